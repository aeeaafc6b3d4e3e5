"""Which sessions another one ends: `surplus` of auth/rules/sessions.py beside SQL."""

from datetime import timedelta

from auth.rules import sessions
from tests.support.rule_rows import Compared, Tables, check, insert_clients, insert_users

MOST = 3
MUTANTS = [
    ("reverse=True", "reverse=False"),
    ("[most - 1 :]", "[most:]"),
]


def compare(tables: Tables) -> Compared:
    ids, client_id = insert_users(tables, 50), insert_clients(tables, 1)[0]
    grants = [{"id": tables.id(), "user_id": id, "client_id": client_id, "scopes": []} for id in ids]
    tables.insert("oauth_grants", [{"granted_at": tables.now} | grant for grant in grants])
    ages = [timedelta(minutes=minutes) for minutes in range(1, 1000)]
    opened = [
        {
            "id": tables.id(),
            "user_id": grant["user_id"],
            "grant_id": grant["id"],
            "method": "oauth_client",
            "aal": "aal1",
            "created_at": tables.now - age,
            "refreshed_at": tables.now,
        }
        for grant in grants
        for age in tables.random.sample(ages, tables.one_of(0, 1, 2, 3, 4, 6))
    ]
    tables.insert("sessions", opened)
    known = [
        {each["id"]: each["created_at"] for each in opened if each["grant_id"] == g["id"]} for g in grants
    ]
    answers = [
        [
            row.id
            for row in tables.all(
                "SELECT id FROM sessions WHERE grant_id = %(id)s ORDER BY created_at DESC OFFSET %(most)s - 1",
                id=grant["id"],
                most=MOST,
            )
        ]
        for grant in grants
    ]
    return Compared(tables.seed, known, answers)


def decide(rules, known) -> list[str]:
    return rules.surplus(known, MOST)


def test_python_decides_as_sql_and_no_mutant_does(tables):
    check(compare(tables), sessions, decide, MUTANTS)
