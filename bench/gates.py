"""GET /gate against GET /user, in turn: processor time of the service and its Postgres."""

from collections import defaultdict, deque
from collections.abc import Iterator

from auth.core.tokens import one_time
from bench import load
from bench.figures import Figure, Pace, against, alone
from bench.people import People
from bench.service import RAISED, BenchService, new_state_dir
from bench.throughput import Measured, measure_requests

_ORIGIN = "http://docs.localhost"
_NUMBER, _VISITORS = 5000, 100
_GATE = """
INSERT INTO oauth_clients (redirect_uris, grant_types, token_endpoint_auth_method, secret_hash, gate_origin)
VALUES ('{http://docs.localhost/.latchkey/callback}', '{authorization_code}', 'client_secret_basic', '', %s)
RETURNING id
"""
_GRANTS = "INSERT INTO oauth_grants (user_id, client_id, scopes) SELECT id, %s, '{profile}' FROM users"
_SESSIONS = """
INSERT INTO sessions (user_id, method, grant_id, scopes, auth_time, opened_by)
SELECT s.user_id, 'oauth_client', g.id, g.scopes, now(), s.id
  FROM sessions AS s
  JOIN oauth_grants AS g ON g.user_id = s.user_id
 LIMIT %s
RETURNING id
"""
_COOKIE = "INSERT INTO gate_sessions (token_hash, user_id, session_id, client_id) SELECT %s, user_id, s.id, c.id FROM sessions AS s, oauth_clients AS c WHERE s.id = %s"


def measure(pace: Pace) -> Iterator[Figure]:
    """Yield the figures."""
    measured: dict[str, list[Measured]] = defaultdict(list)
    with new_state_dir() as state_dir, BenchService(state_dir, AUTH_GATE="true", **RAISED) as service:
        people = People(service, 1000)
        people.insert()
        tokens = people.access_tokens(people.refresh_tokens(_VISITORS))
        requests = deque(
            {
                "GET /user": [load.get("/user", token=token) for token in tokens],
                "GET /gate": list(_visits(service)),
            }.items()
        )
        for number in range(pace.warm_ups + pace.rounds):
            for name, each in requests:
                taken = measure_requests(service, each, number=pace.number(_NUMBER, 40))
                if number >= pace.warm_ups:
                    measured[name].append(taken)
            requests.rotate()
    users, gates = ([1 / one.spent.total for one in measured[name]] for name in ("GET /user", "GET /gate"))
    name = "GET /gate: requests for each ms of processor time, against GET /user"
    yield against(name, gates, users, "≥ 0.95")
    yield alone(
        "failed requests", sum(one.load.failures for each in measured.values() for one in each), "≤ 0"
    )


def _visits(service: BenchService) -> Iterator[str]:
    """Create a gate and sessions at it, and yield what its proxy asks."""
    with service.database() as connection, connection.cursor() as cursor:
        cursor.execute(_GATE, (_ORIGIN,))
        cursor.execute(_GRANTS, cursor.fetchone())
        cursor.execute(_SESSIONS, (_VISITORS,))
        for (session_id,) in cursor.fetchall():
            token = one_time.new_token()
            cursor.execute(_COOKIE, (one_time.hash_token(token), session_id))
            asked = load.get("/gate", cookie=f"latchkey-gate={token}")
            host, uri = "X-Forwarded-Host: docs.localhost\r\n", "X-Forwarded-Uri: /assets/app.js\r\n"
            yield asked.replace("\r\nCookie", f"\r\n{host}{uri}Cookie")
        cursor.execute("ANALYZE oauth_clients, oauth_grants, sessions, gate_sessions")
