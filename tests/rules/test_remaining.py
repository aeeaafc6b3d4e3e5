"""What must remain: auth/rules/remaining.py beside SQL."""

from datetime import timedelta
from typing import Any

from auth.rules import remaining
from tests.support.rule_rows import (
    HOUR,
    Compared,
    Tables,
    ask,
    check,
    decided,
    insert_users,
    read_users,
)

WAYS = ("email", "phone", "passkey", "github", "google")
MUTANTS = [
    ('if has_passkey and "passkey" in usable:', "if has_passkey:"),
    ('"password" in usable and person', "person"),
    ("address.is_proved or (has_password and", "(has_password and"),
    ("has_password and address.confirmed_at is not None", "has_password"),
    ("provider in usable and", ""),
]
MUTANTS_OF_LEAVING = [
    ('user.role == "admin" and', ""),
    ("other_administrators == 0", "other_administrators == 1"),
]


def compare(tables: Tables) -> Compared:
    ids = insert_users(tables, tables.cases)
    tables.insert(
        "identities",
        [
            {"id": tables.id(), "user_id": id, "provider": name, "subject": id, "identity_data": {}}
            for id in ids
            for name in ("github", "google")
            if tables.chance(0.15)
        ],
    )
    asked = ask(
        tables,
        ids,
        lambda: {"usable": [each for each in (*WAYS, "password") if tables.chance(0.5)]},
    )
    answers = decided(tables, "can_sign_in(u.id, ARRAY(SELECT jsonb_array_elements_text(a -> 'usable')))")
    held = tables.all(
        """SELECT ARRAY(SELECT i.provider FROM identities AS i WHERE i.user_id = c.user_id) AS providers,
                  (SELECT count(*) FROM factors AS f WHERE f.user_id = c.user_id AND f.factor_type = 'passkey')
                    AS passkeys
             FROM cases AS c ORDER BY c.n"""
    )
    return Compared(tables.seed, list(zip(asked, held, strict=True)), answers)


def decide(rules, each) -> bool:
    case, held = each
    facts = (case.user, held.providers, held.passkeys > 0, case.asked["usable"])
    refusal = rules.refusal_of_removal(*facts)
    assert refusal == (None if rules.can_sign_in(*facts) else "single_identity_not_deletable")
    return refusal is None


def compare_leaving(tables: Tables) -> Compared:
    """Small populations, one after the other."""
    ids = insert_users(tables, 4)
    ask(tables, ids, dict)
    cases: list[Any] = []
    answers: list[Any] = []
    for _ in range(50):
        for id in ids:
            tables.run(
                "UPDATE users SET role = %(role)s, banned_until = %(until)s WHERE id = %(id)s",
                role=tables.one_of("admin", "authenticated", "staff"),
                until=tables.one_of(None, None, tables.ago(timedelta(0)), tables.ago(-HOUR)),
                id=id,
            )
        others = decided(
            tables,
            """(SELECT count(*) FROM users AS o WHERE o.id <> u.id AND o.role = 'admin'
                   AND (o.banned_until <= now() OR o.banned_until IS NULL))""",
        )
        cases += zip(read_users(tables), others, strict=True)
        answers += decided(tables, "is_last_administrator(u)")
    return Compared(tables.seed, cases, answers)


def decide_leaving(rules, each) -> bool:
    return rules.refusal_of_leaving(*each) == "last_administrator"


def test_python_decides_as_sql_and_no_mutant_does(tables):
    check(compare(tables), remaining, decide, MUTANTS)


def test_python_keeps_an_administrator_as_sql_and_no_mutant_does(tables):
    check(compare_leaving(tables), remaining, decide_leaving, MUTANTS_OF_LEAVING)
