"""Who may enter the code of a device, and what it learns: auth/rules/devices.py beside SQL."""

from datetime import timedelta

from auth.rules import devices
from tests.support.rule_rows import HOUR, Compared, Tables, check, insert_clients

MUTANTS = [
    ("request.code_expires_at <= now", "request.code_expires_at < now"),
    ("request.is_decided or", ""),
    ("request.session_id is None or", ""),
    ("or request.session_id == session_id", "or True"),
    ("poll.polled_at > now", "poll.polled_at >= now"),
    ("now - poll.interval + _DELAY", "now - poll.interval"),
    ("poll.code_expires_at <= now", "poll.code_expires_at < now"),
    ("if poll.has_session", "if False"),
    ('if poll.decision == "denied"', "if False"),
]
# What a device learned when SQL decided.
STATE = """
SELECT r.*, is_open_to(r, %(session)s) AS is_open, early.is_so AS is_early,
       CASE WHEN r.opened_session_id IS NOT NULL THEN 'approved'
            WHEN r.decision = 'denied' THEN 'access_denied'
            WHEN r.code_expires_at <= now() THEN 'expired_token'
            WHEN r.decision = 'approved' THEN 'approved'
            WHEN early.is_so THEN 'slow_down'
            ELSE 'authorization_pending' END AS learnt
  FROM oauth_requests AS r
 CROSS JOIN LATERAL (
         SELECT coalesce(r.polled_at > now() - make_interval(secs => r.poll_interval - 1), false)
       ) AS early (is_so)
"""


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
            "poll_interval": tables.one_of(5, 10),
            "polled_at": tables.maybe_ago(0.7, *(timedelta(seconds=seconds) for seconds in (4, 5, 9, 10))),
            "opened_session_id": tables.one_of(None, None, None, tables.id()),
            "code_expires_at": tables.ago(timedelta(0), -HOUR),
            "session_id": tables.one_of(None, *sessions),
            "decision": tables.one_of(None, None, "approved", "denied"),
        }
        for place in range(tables.cases)
    ]
    tables.insert("oauth_requests", [{"prompts": []} | each for each in requests])
    rows = tables.all(STATE, session=sessions[0])
    cases = [(tables.now, row, sessions[0]) for row in rows]
    return Compared(tables.seed, cases, [[row.is_open, row.is_early, row.learnt] for row in rows])


def decide(rules, each) -> list[object]:
    now, row, session = each
    request = rules.DeviceRequest(
        code_expires_at=row.code_expires_at, session_id=row.session_id, is_decided=row.decision is not None
    )
    poll = rules.Poll(
        code_expires_at=row.code_expires_at,
        interval=timedelta(seconds=row.poll_interval),
        polled_at=row.polled_at,
        decision=row.decision,
        has_session=row.opened_session_id is not None,
    )
    return [
        rules.is_open_to(request, session, now),
        rules.is_early(poll, now),
        rules.state_of_poll(poll, now),
    ]


def test_python_decides_as_sql_and_no_mutant_does(tables):
    check(compare(tables), devices, decide, MUTANTS)
