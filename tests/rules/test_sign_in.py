"""Whether a user may sign in: auth/rules/sign_in.py beside SQL."""

from dataclasses import replace
from datetime import datetime, timedelta
from types import SimpleNamespace

from auth.rules import sign_in
from tests.support.rule_rows import (
    MINUTE,
    Case,
    Compared,
    Confirmation,
    Tables,
    ask,
    check,
    decided,
    insert_users,
)

MUTANTS = [
    ('if provider == "phone" and settings.phone_confirm_required', 'if provider == "phone"'),
    ("    if is_banned(person, now):\n", "    if False:\n"),
    ("role is not None and person.role != role", "role is not None"),
    (" and person.email_confirmed_at is None:", ":"),
]
MUTANTS_OF_CODES = [
    ("code.expires_at <= now", "code.expires_at < now"),
    ("not is_used and code.opened_by", "code.opened_by"),
    ("    if not is_right:\n", "    if False:\n"),
    ("end_of_session(user, opener, policy, now)", "False"),
]


def compare(tables: Tables) -> Compared:
    asked = ask(tables, insert_users(tables, tables.cases), lambda: arguments(tables))
    answers = decided(
        tables,
        """sign_in_refusal(u, a ->> 'provider', (a -> 'email_required')::boolean, (a -> 'phone_required')::boolean,
                           (a -> 'admin_only')::boolean)""",
    )
    return Compared(tables.seed, asked, answers)


def arguments(tables: Tables) -> dict[str, object]:
    return {
        "provider": tables.one_of("email", "phone", "github"),
        "email_required": tables.chance(0.5),
        "phone_required": tables.chance(0.5),
        "admin_only": tables.chance(0.3),
    }


def decide(rules, case: Case) -> str | None:
    asked = case.asked
    settings = Confirmation(
        email_confirm_required=asked["email_required"], phone_confirm_required=asked["phone_required"]
    )
    return rules.refusal_of_password(
        replace(case.user, password_hash="a hash"),
        is_right=True,
        provider=asked["provider"],
        settings=settings,
        role="admin" if asked["admin_only"] else None,
        now=case.now,
    )


def test_python_decides_as_sql_and_no_mutant_does(tables):
    check(compare(tables), sign_in, decide, MUTANTS)


def compare_codes(tables: Tables) -> Compared:
    """The session of each case has issued its code, or none has."""
    asked = ask(tables, insert_users(tables, tables.cases), lambda: code(tables))
    answers = decided(
        tables,
        """CASE WHEN ((a ->> 'expires_at')::timestamptz > now()
                      AND ((a -> 'is_used')::boolean OR NOT (a -> 'is_handed_on')::boolean
                           OR end_of(s, (a -> 'lifetime')::integer, (a ->> 'timebox')::float::integer)
                              IS NULL)) IS NOT TRUE THEN 'flow_state_not_found'
                WHEN NOT (a -> 'is_right')::boolean THEN 'bad_code_verifier'
                WHEN (a -> 'is_used')::boolean THEN 'reused'
                WHEN is_banned(u) THEN 'user_banned' END""",
    )
    return Compared(tables.seed, asked, answers)


def code(tables: Tables) -> dict[str, object]:
    return {
        "expires_at": tables.ago(timedelta(0), -MINUTE, -MINUTE).isoformat(),
        "is_used": tables.chance(0.3),
        "is_handed_on": tables.chance(0.5),
        "is_right": tables.chance(0.8),
    }


def decide_code(rules, case: Case) -> str | None:
    asked = case.asked
    sent = SimpleNamespace(
        expires_at=datetime.fromisoformat(asked["expires_at"]),
        session_id="used" if asked["is_used"] else None,
        opened_by="a browser" if asked["is_handed_on"] else None,
    )
    opener = case.session if asked["is_handed_on"] else None
    facts = {"is_right": asked["is_right"], "policy": case.policy, "now": case.now}
    return rules.verdict_on_code(sent, case.user, opener, **facts)


def test_python_takes_codes_as_sql_and_no_mutant_does(tables):
    check(compare_codes(tables), sign_in, decide_code, MUTANTS_OF_CODES)
