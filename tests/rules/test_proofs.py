"""Which proof an act takes: auth/rules/proofs.py beside SQL."""

from datetime import datetime
from typing import Any

from auth.rules import proofs, tokens
from auth.rules.policy import on_pages
from tests.support.rule_rows import (
    EDGES,
    Case,
    Compared,
    Tables,
    ask,
    check,
    decided,
    insert_users,
    moment_of,
    policy_of,
)

KINDS = (
    *("metadata", "password", "account", "email", "phone", "identity", "factor", "passkey"),
    *("recovery_codes", "grant", "api_key", "device"),
)
MUTANTS = [
    ("moment > limit", "moment >= limit"),
    (
        "now - RECENT_AGE < added_at < session.session_created_at",
        "now - RECENT_AGE <= added_at < session.session_created_at",
    ),
    ("< added_at < session.session_created_at", "< added_at <= session.session_created_at"),
    ("user.oldest_factor_at > now", "user.oldest_factor_at >= now"),
    ("session.session_created_at > now - _RECOVERY_AGE", "session.session_created_at >= now - _RECOVERY_AGE"),
    ("authenticated_at(session) <= now", "authenticated_at(session) < now"),
    ("max(policy.proof_age, _LEAST_AGE_OF_FACTOR)", "policy.proof_age"),
    (' or (act.kind == "password" and is_fresh_recovery(session, now))', ""),
    ('user.role == "admin" and', ""),
    ('("email", "phone", "identity", "passkey")', '("email", "phone", "identity")'),
    ('return "aal1" if has_factor(user) else "session"', 'return "aal1"'),
    ("session.opened_by is not None or session.method", "session.method"),
    ('("begun", "factor")', '("begun", "factor", "code")'),
    ("is_fresh(last_proof(user, session)", "is_fresh(proved_at(session)"),
    ('if target.role == "admin"', 'if target.role == "staff"'),
]

MUTANTS_OF_ACTS = [
    ("return min((", "return max(("),
    ("for act in acts]", "for act in [*acts][:1]]"),
    ("if id is None else each.id == id", "if id is None else each.id != id"),
    ("kind=each.kind, added_at=each.added_at)", "kind=kind, added_at=each.added_at)"),
]
MUTANTS_OF_CODES = [
    ("address_added_at >= now - RECENT_AGE", "address_added_at > now - RECENT_AGE"),
    ("moment > created_at + timedelta(microseconds=1)", "moment >= created_at"),
]


def compare(tables: Tables) -> Compared:
    def arguments():
        verb = tables.one_of("add", "add", "change", "remove", "remove")
        added_at = tables.maybe_ago(0.8, *EDGES[:-1]) if verb == "remove" else None
        return {
            "aal": tables.one_of("aal0", "aal1", "aal1", "aal2", "aal2"),
            "given": tables.one_of(None, None, None, None, "begun", "factor", "code", "proof"),
            "verb": verb,
            "kind": tables.one_of(*KINDS, "password", "password"),
            "added_at": added_at and added_at.isoformat(),
        }

    asked = ask(tables, insert_users(tables, 4 * tables.cases), arguments)
    answers = decided(
        tables,
        """jsonb_build_array(
             refusal_of_act('session', u, s, a ->> 'aal', a ->> 'required', a ->> 'given',
                            (a -> 'proof_age')::integer, (a ->> 'change_age')::float::integer, a ->> 'verb',
                            a ->> 'kind', (a ->> 'added_at')::timestamptz),
             refusal_of_act('administrator', u, NULL, NULL, NULL, NULL, NULL, NULL, a ->> 'verb', a ->> 'kind', NULL),
             coalesce(may_take_back(s, (a ->> 'added_at')::timestamptz), false),
             is_fresh_recovery(s), extract(epoch FROM proved_at(u, s)),
             coalesce(now() - proved_at(u, s) < make_interval(secs => (a -> 'proof_age')::integer), false))""",
    )
    return Compared(tables.seed, asked, answers)


def decide(rules, case: Case) -> list[object]:
    user, session, policy, now, asked = case
    added_at = asked["added_at"] and datetime.fromisoformat(asked["added_at"])
    act = rules.Act(verb=asked["verb"], kind=asked["kind"], added_at=added_at)
    proved_at = rules.last_proof(user, session)
    return [
        rules.refusal_of_act(act, user, session, asked["aal"], asked["given"], policy, now),
        rules.refusal_of_target(user),
        rules.may_take_back(user, session, added_at, now),
        rules.is_fresh_recovery(session, now),
        proved_at and proved_at.timestamp(),
        rules.has_proof(user, session, policy, now),
    ]


def test_python_decides_as_sql_and_no_mutant_does(tables):
    check(compare(tables), proofs, decide, MUTANTS)


def compare_acts(tables: Tables) -> Compared:
    """Several acts of a user at once, on what the user has: by its id or by its kind."""
    ids = insert_users(tables, 2 * tables.cases)
    tables.insert(
        "api_keys",
        [
            {
                "id": tables.id(),
                "user_id": id,
                "name": "",
                "key_mac": b"",
                "scopes": [],
                "created_at": tables.ago(),
            }
            for id in ids
            if tables.chance(0.4)
        ],
    )
    tables.insert("identities", [identity(tables, id) for id in ids if tables.chance(0.5)])
    held: dict[str, list[Any]] = {id: [] for id in ids}
    for row in tables.all(
        "SELECT u.id AS owner, a.* FROM users AS u, additions_to(u.id, '-infinity') AS a ORDER BY a.id"
    ):
        held[row.owner].append(row)
    places = iter(ids)
    sessions = {row.user_id: row.id for row in tables.all("SELECT user_id, id FROM sessions")}

    def arguments():
        id = next(places)
        return {
            "session": sessions[id],
            "aal": tables.one_of("aal1", "aal1", "aal2"),
            "level": tables.one_of("session", "aal1"),
            "given": tables.one_of(None, None, "proof", "code", "factor"),
            "acts": [wanted(tables, held[id]) for _ in range(tables.one_of(1, 2, 3))],
        }

    asked = ask(tables, ids, arguments)
    part = "ARRAY(SELECT each ->> {} FROM jsonb_array_elements(a -> 'acts') AS each)"
    answers = decided(
        tables,
        f"""locked_caller_state(u.id, (a ->> 'session')::uuid, NULL, (a -> 'lifetime')::integer,
                                (a ->> 'timebox')::float::integer, a ->> 'aal', a ->> 'level', a ->> 'required',
                                a ->> 'given', (a -> 'proof_age')::integer, (a ->> 'change_age')::float::integer,
                                {part.format(0)}, {part.format(1)}, {part.format(2)})""",
    )
    cases = [(case, held[id]) for case, id in zip(asked, ids, strict=True)]
    return Compared(tables.seed, cases, answers)


def identity(tables: Tables, owner: str) -> dict[str, Any]:
    return {
        "id": tables.id(),
        "user_id": owner,
        "provider": "github",
        "subject": owner,
        "identity_data": {},
        "created_at": tables.ago(),
    }


def wanted(tables: Tables, held: list[Any]) -> tuple[str, str | None, str | None]:
    if held and tables.chance(0.5):
        return "remove", None, tables.one_of(tables.one_of(*held).id, tables.id())
    kind = tables.one_of("email", "identity", "factor", "passkey", "api_key", "metadata", "password")
    return tables.one_of("add", "change", "remove"), kind, None


def decide_acts(rules, each) -> str:
    case, held = each
    user, session, policy, now, asked = case
    kinds = {"totp": "factor", "webauthn": "factor"}
    additions = [
        rules.Addition(id=row.id, kind=kinds.get(row.type, row.type), added_at=row.added_at) for row in held
    ]
    acts = [act for wish in asked["acts"] for act in rules.acts_on(*wish, additions)]
    refusal = tokens.refusal_of_session(user, session, None, asked["aal"], asked["level"], policy, now)
    return (
        refusal
        or rules.refusal_of_acts(acts, user, session, asked["aal"], asked["given"], policy, now)
        or "live"
    )


def compare_codes(tables: Tables) -> Compared:
    """Of the mailbox of an address that may have been changed lately."""
    asked = ask(tables, insert_users(tables, tables.cases), dict)
    moments = decided(
        tables,
        """jsonb_build_array(extract(epoch FROM u.created_at), (
             SELECT extract(epoch FROM i.updated_at) FROM identities AS i
              WHERE i.user_id = u.id AND i.provider = 'email'))""",
    )
    recent = decided(tables, "is_recent_address(u.id, coalesce(u.email, ''))")
    cases = [(case.now, *each) for case, each in zip(asked, moments, strict=True)]
    return Compared(tables.seed, cases, ["proof" if is_recent else "code" for is_recent in recent])


def decide_code(rules, each) -> str:
    now, created_at, changed_at = each[0], *map(moment_of, each[1:])
    added_at = changed_at and rules.added_at(changed_at, created_at)
    return rules.proof_of_code(is_of_session=True, address_added_at=added_at, now=now)


def test_python_decides_about_several_acts_as_sql_and_no_mutant_does(tables):
    check(compare_acts(tables), proofs, decide_acts, MUTANTS_OF_ACTS)


def compare_additions(tables: Tables) -> Compared:
    """With each addition, and which of them SQL lists as recent."""
    ids = insert_users(tables, tables.cases)
    tables.insert("identities", [identity(tables, id) for id in ids])
    rows = tables.all(
        "SELECT a.id, a.added_at, a.id IN (SELECT id FROM additions_to(u.id, now() - recent_age())) AS is_recent"
        "  FROM users AS u, additions_to(u.id, '-infinity') AS a ORDER BY a.id"
    )
    cases = [(row.id, row.added_at, tables.now) for row in rows]
    return Compared(tables.seed, cases, [row.is_recent for row in rows])


def decide_addition(rules, each) -> bool:
    id, added_at, now = each
    return rules.is_recent(rules.Addition(id=id, kind="identity", added_at=added_at), now)


def test_python_says_which_additions_are_recent_as_sql_and_no_mutant_does(tables):
    check(
        compare_additions(tables),
        proofs,
        decide_addition,
        [("addition.added_at >= now - RECENT_AGE", "addition.added_at > now - RECENT_AGE")],
    )


def test_proof_on_the_pages_counts_for_five_minutes_at_least():
    def ages(change_age):
        asked = {"lifetime": 1, "timebox": None, "required": "none", "change_age": change_age}
        asked["proof_age"] = 900 if change_age is None else min(change_age, 900)
        policy = on_pages(policy_of(asked))
        return policy.proof_age.total_seconds(), policy.change_age and policy.change_age.total_seconds()

    assert [ages(age) for age in (None, 0, 299, 301, 901)] == [
        (900, None),
        (300, 300),
        (300, 300),
        (301, 301),
        (900, 901),
    ]


def test_python_says_what_a_code_proves_as_sql_and_no_mutant_does(tables):
    check(compare_codes(tables), proofs, decide_code, MUTANTS_OF_CODES)
