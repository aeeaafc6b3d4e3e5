"""Whether a user may sign in: auth/rules/sign_in.py beside what SQL decides, and the statement of a log-in."""

import json

from auth.rules import sign_in
from sql import shipped
from tests.support.rule_rows import Case, Compared, Tables, ask, check, decided, insert_users

MUTANTS = [
    ('if provider == "phone" and "phone" in confirmed_kinds', 'if provider == "phone"'),
    ("    if is_banned(user, now):\n", "    if False:\n"),
    ('admin_only and user.role != "admin"', "admin_only"),
    ("address is not None and address.confirmed_at is not None", "address is not None"),
]
MUTANTS_OF_PASSWORDS = [
    ("user is None or not is_right", "user is None"),
    ("refusal is None and not user.has_password", "False"),
    ("refusal is None and not", "not"),
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
    kinds = frozenset(kind for kind in ("email", "phone") if asked[f"{kind}_required"])
    facts = (case.user, asked["provider"], kinds)
    return rules.refusal_of_sign_in(*facts, admin_only=asked["admin_only"], now=case.now)


def compare_passwords(tables: Tables) -> Compared:
    """Each log-in is a statement of its own."""
    ids = insert_users(tables, tables.cases // 2)
    tables.run("UPDATE users SET sign_up_hash = 'another hash' WHERE password_hash IS NULL")
    rows = tables.all("SELECT id, email, phone, password_hash, sign_up_hash FROM users")
    known = {row.id: row for row in rows}
    asked = ask(tables, ids, lambda: arguments(tables) | {"is_right": tables.chance(0.8)})
    statement = shipped()["sign_in"].direct
    cases, answers = [], []
    for id, case in zip(ids, asked, strict=True):
        provider, row = case.asked["provider"], known[id]
        if provider == "github" or getattr(row, provider) is None:
            continue
        is_unknown = tables.chance(0.1)
        address = {"email": None, "phone": None} | {provider: getattr(row, provider)}
        hash = row.password_hash or row.sign_up_hash
        values = {
            "session_id": tables.id(),
            "is_right": case.asked["is_right"],
            "checked_password_hash": hash,
            "provider": provider,
            "admin_only": case.asked["admin_only"],
            "email_confirm_required": case.asked["email_required"],
            "phone_confirm_required": case.asked["phone_required"],
            "sessions_per_user": 10,
            "refresh_token_lifetime": 86400,
            "mfa_required": "none",
            "tells": True,
            "notify_sign_in": False,
            "audience": "authenticated",
            "origin": json.dumps({"actor": "anonymous"}),
        }
        unknown = {name: value and f"9{value}" for name, value in address.items()}
        everything = (
            dict.fromkeys(shipped()["sign_in"].parameters) | values | (unknown if is_unknown else address)
        )
        (told,) = tables.all(statement, **everything)
        cases.append((case, is_unknown))
        answers.append(told.state)
    return Compared(tables.seed, cases, answers)


def decide_password(rules, each) -> str:
    case, is_unknown = each
    asked = case.asked
    refusal = rules.refusal_of_password(
        None if is_unknown else case.user,
        is_right=asked["is_right"],
        provider=asked["provider"],
        confirmed_kinds=frozenset(kind for kind in ("email", "phone") if asked[f"{kind}_required"]),
        admin_only=asked["admin_only"],
        now=case.now,
    )
    return refusal or "live"


def test_python_decides_as_sql_and_no_mutant_does(tables):
    check(compare(tables), sign_in, decide, MUTANTS)


def test_python_refuses_passwords_as_the_statement_and_no_mutant_does(tables):
    check(compare_passwords(tables), sign_in, decide_password, MUTANTS_OF_PASSWORDS)
