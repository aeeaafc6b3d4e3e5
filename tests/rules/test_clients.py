"""Whom an application admits: auth/rules/clients.py beside SQL."""

from auth.rules import clients
from tests.support.rule_rows import (
    Compared,
    Tables,
    ask,
    check,
    client_of,
    decided,
    insert_clients,
    insert_users,
    read_clients,
)

MUTANTS = [
    ("is_anonymous(user) or", ""),
    ("not client.is_dynamic and", ""),
    ("{user.role, *", "{*"),
    ("listed if isinstance(listed, list) else []", "listed or []"),
    ("until > now", "until >= now"),
    ("known.accepts_either_method or", ""),
    ('return "public" if', "return None if"),
]


def compare(tables: Tables) -> Compared:
    ids = insert_users(tables, tables.cases)
    known = insert_clients(tables, 300)

    def arguments():
        return {
            "client_id": tables.one_of(*known),
            "method": tables.one_of("none", "client_secret_basic", "client_secret_post"),
            "hash": tables.one_of(None, "present", "previous", "another"),
        }

    asked = ask(tables, ids, arguments)
    answers = decided(
        tables,
        """(SELECT jsonb_build_array(may_use(u, k, s.resource),
                                     client_refusal(k, a ->> 'method', convert_to(a ->> 'hash', 'UTF8')))
              FROM oauth_clients AS k WHERE k.id = (a ->> 'client_id')::uuid)""",
    )
    rows = read_clients(tables)
    return Compared(tables.seed, [(case, rows[case.asked["client_id"]]) for case in asked], answers)


def decide(rules, each) -> list[object]:
    (user, session, _, now, asked), row = each
    credentials = rules.Credentials(
        auth_method=row.token_endpoint_auth_method,
        secret_hash=row.secret_hash and bytes(row.secret_hash),
        previous_secret_hash=row.previous_secret_hash and bytes(row.previous_secret_hash),
        previous_secret_expires_at=row.previous_secret_expires_at,
        accepts_either_method=row.accepts_either_method,
        is_blocked=row.is_blocked,
    )
    sent = asked["hash"] and asked["hash"].encode()
    return [
        rules.may_use(user, client_of(row), session.resource),
        rules.problem_of_credentials(credentials, asked["method"], sent, now),
    ]


def test_python_decides_as_sql_and_no_mutant_does(tables):
    check(compare(tables), clients, decide, MUTANTS)
