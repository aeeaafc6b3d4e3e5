"""Which proof an act takes: auth/rules/proofs.py beside what SQL decides."""

from datetime import datetime

from auth.rules import proofs
from tests.support.rule_rows import (
    CASES,
    EDGES,
    Case,
    Compared,
    Tables,
    ask,
    check,
    decided,
    insert_users,
)

KINDS = (
    *("metadata", "password", "account", "email", "phone", "identity", "factor", "passkey"),
    *("recovery_codes", "grant", "api_key", "device"),
)
MUTANTS = [
    ("moment > limit", "moment >= limit"),
    ("now - RECENT_AGE < added_at < session.created_at", "now - RECENT_AGE <= added_at < session.created_at"),
    ("< added_at < session.created_at", "< added_at <= session.created_at"),
    ("user.oldest_factor_at > now", "user.oldest_factor_at >= now"),
    ("session.created_at > now - _RECOVERY_AGE", "session.created_at >= now - _RECOVERY_AGE"),
    ("authenticated_at(session) <= now", "authenticated_at(session) < now"),
    ("max(policy.proof_age, _LEAST_AGE_OF_FACTOR)", "policy.proof_age"),
    ('user.role == "admin" and', ""),
    ('("email", "phone", "identity", "passkey")', '("email", "phone", "identity")'),
    ('return "aal1" if has_factor(user) else "session"', 'return "aal1"'),
    ("session.opened_by is not None or session.method", "session.method"),
    ('("begun", "factor")', '("begun", "factor", "code")'),
    ('if target.role == "admin"', 'if target.role == "staff"'),
]


def compare(tables: Tables) -> Compared:
    def arguments():
        verb = tables.one_of("add", "add", "change", "remove", "remove")
        added_at = tables.maybe_ago(0.8, *EDGES[:-1]) if verb == "remove" else None
        return {
            "aal": tables.one_of("aal0", "aal1", "aal1", "aal2", "aal2"),
            "given": tables.one_of(None, None, None, None, "begun", "factor", "code", "proof"),
            "verb": verb,
            "kind": tables.one_of(*KINDS),
            "added_at": added_at and added_at.isoformat(),
        }

    asked = ask(tables, insert_users(tables, 4 * CASES), arguments)
    answers = decided(
        tables,
        """jsonb_build_array(
             refusal_of_act('session', u, s, a ->> 'aal', a ->> 'required', a ->> 'given',
                            (a -> 'proof_age')::integer, (a ->> 'change_age')::float::integer, a ->> 'verb',
                            a ->> 'kind', (a ->> 'added_at')::timestamptz),
             refusal_of_act('administrator', u, NULL, NULL, NULL, NULL, NULL, NULL, a ->> 'verb', a ->> 'kind', NULL),
             coalesce(may_take_back(s, (a ->> 'added_at')::timestamptz), false),
             is_fresh_recovery(s), extract(epoch FROM proved_at(u, s)))""",
    )
    return Compared(tables.seed, asked, answers)


def decide(rules, case: Case) -> list[object]:
    user, session, policy, now, asked = case
    added_at = asked["added_at"] and datetime.fromisoformat(asked["added_at"])
    act = rules.Act(verb=asked["verb"], kind=asked["kind"], added_at=added_at)
    proved_at = rules.last_proof(user, session)
    return [
        rules.refusal_of_act(act, user, session, asked["aal"], asked["given"], policy, now),
        rules.refusal_of_administrator(user),
        rules.may_take_back(user, session, added_at, now),
        rules.is_fresh_recovery(session, now),
        proved_at and proved_at.timestamp(),
    ]


def test_python_decides_as_sql_and_no_mutant_does(tables):
    check(compare(tables), proofs, decide, MUTANTS)
