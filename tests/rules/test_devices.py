"""Who may enter the code of a device: auth/rules/devices.py beside what SQL decides."""

from datetime import timedelta

from auth.rules import devices
from tests.support.rule_rows import HOUR, Compared, Tables, check, insert_clients

MUTANTS = [
    ("request.code_expires_at <= now", "request.code_expires_at < now"),
    ("request.is_decided or", ""),
    ("request.session_id is None or", ""),
    ("or request.session_id == session_id", "or True"),
]


def compare(tables: Tables) -> Compared:
    clients, sessions = insert_clients(tables, 1), [tables.id(), tables.id()]
    requests = [
        {
            "id": tables.id(),
            "client_id": clients[0],
            "scopes": [],
            "expires_at": tables.now,
            "code_hash": str(place).encode(),
            "user_code_mac": str(place).encode(),
            "poll_interval": 5,
            "code_expires_at": tables.ago(timedelta(0), -HOUR),
            "session_id": tables.one_of(None, *sessions),
            "decision": tables.one_of(None, None, "approved", "denied"),
        }
        for place in range(tables.cases)
    ]
    tables.insert("oauth_requests", [{"prompts": []} | each for each in requests])
    rows = tables.all(
        "SELECT r.*, is_open_to(r, %(session)s) AS is_open FROM oauth_requests AS r", session=sessions[0]
    )
    cases = [(tables.now, row, sessions[0]) for row in rows]
    return Compared(tables.seed, cases, [row.is_open for row in rows])


def decide(rules, each) -> bool:
    now, row, session = each
    request = rules.DeviceRequest(
        code_expires_at=row.code_expires_at, session_id=row.session_id, is_decided=row.decision is not None
    )
    return rules.is_open_to(request, session, now)


def test_python_decides_as_sql_and_no_mutant_does(tables):
    check(compare(tables), devices, decide, MUTANTS)
