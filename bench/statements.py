"""Statements and commits of a request, counted in the log and the transaction ids of Postgres."""

import http.client
import itertools
import json
import re
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path

from bench.figures import Figure, Pace, alone
from bench.people import LOG_IN, PASSWORD, REFRESH, People
from bench.service import RAISED, BenchService, new_state_dir

REQUESTS = 10
# In round trips. A log-in counts against its limit, selects the password hash, and ends in an act of five: BEGIN,
# the lock, effects and COMMIT travel with other statements.
TARGETS = {"GET /user": "≤ 1", "refresh": "≤ 2", "log-in": "≤ 7"}
COMMITS = {"GET /user": "≤ 1", "refresh": "≤ 1", "log-in": "≤ 3"}


def measure(_pace: Pace) -> Iterator[Figure]:
    """Yield the figures."""
    # Without the delivery process, which polls the outbox.
    with (
        new_state_dir() as state_dir,
        BenchService(state_dir, AUTH_WORKERS="1", AUTH_DELIVER="false", **RAISED) as service,
    ):
        people = People(service, 100)
        people.insert()
        access_tokens, refresh_tokens = (
            people.access_tokens(people.refresh_tokens(50)),
            people.refresh_tokens(50),
        )
        connection = http.client.HTTPConnection("127.0.0.1", service.port)
        statuses: Counter[int] = Counter()

        def send(method: str, path: str, body: dict | None = None, token: str | None = None) -> None:
            headers = {"Content-Type": "application/json"} | (
                {"Authorization": f"Bearer {token}"} if token else {}
            )
            connection.request(method, path, json.dumps(body) if body else None, headers)
            response = connection.getresponse()
            response.read()
            statuses[response.status] += 1

        new = {"password": PASSWORD, "data": {"name": "A. User"}}
        requests: dict[str, Callable[[int], None]] = {
            "GET /user": lambda n: send("GET", "/user", token=access_tokens[n]),
            "refresh": lambda n: send("POST", REFRESH, {"refresh_token": refresh_tokens[n]}),
            "log-in": lambda n: send(
                "POST", LOG_IN, {"email": f"user{n + 1}@bench.example", "password": PASSWORD}
            ),
            "sign-up": lambda n: send("POST", "/signup", {"email": f"new{n}@bench.example", **new}),
            "log-out": lambda n: send("POST", "/logout", token=access_tokens[n]),
        }
        for name, request in requests.items():
            statements, commits = _count(service, request)
            yield alone(f"statements of a request: {name}", statements / REQUESTS, TARGETS.get(name))
            yield alone(f"commits that write, of a request: {name}", commits / REQUESTS, COMMITS.get(name))
        connection.close()
        failures = sum(number for status, number in statuses.items() if status >= 400)
        yield alone("failed requests while statements were counted", failures, "≤ 0")


def _count(service: BenchService, request: Callable[[int], None]) -> tuple[int, int]:
    log, connection = service.state_dir / "postgres.log", service.database()
    with connection.cursor() as cursor:

        def next_transaction() -> int:
            return service.value("SELECT pg_snapshot_xmax(pg_current_snapshot())::text::bigint")

        cursor.execute("ALTER SYSTEM SET log_line_prefix = '%a '")
        cursor.execute("ALTER SYSTEM SET log_statement = 'all'")
        cursor.execute("SELECT pg_reload_conf()")
        began = log.stat().st_size
        # Send requests until the service's connection has reloaded the settings and prepared its statements.
        for number in itertools.count(REQUESTS):
            request(number)
            if "\nlatchkey LOG:  statement" in _since(log, began):
                break
        began, first = log.stat().st_size, next_transaction()
        for number in range(REQUESTS):
            request(number)
        commits = next_transaction() - first
        statements = re.findall(r"^latchkey LOG:  statement", _since(log, began), re.MULTILINE)
        cursor.execute("ALTER SYSTEM RESET log_statement")
        cursor.execute("SELECT pg_reload_conf()")
    connection.close()
    return len(statements), commits


def _since(log: Path, position: int) -> str:
    with log.open() as lines:
        lines.seek(position)
        return lines.read()
