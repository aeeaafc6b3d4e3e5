"""The service as `make run` starts it, and the constant answer, served by the same gunicorn worker."""

import http.client
import json
import os
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import psycopg2
from psycopg2.extensions import connection as Connection

from auth.core.settings.state import running_postgres_url
from bench import load
from tests.support.processes import CHECKOUT, GUNICORN, Service, children_of, sockets_of

WORKERS = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
_LIMITS = (
    "SIGNUP",
    "LOGIN",
    "LOGIN_FAILURES",
    "ACCOUNT_FAILURES",
    "RECOVER",
    "VERIFY",
    "REFRESH",
    "LOGOUT",
    "USER_CHANGES",
)
# Requests are counted, but never refused.
RAISED = {f"AUTH_RATE_LIMIT_{name}": "1000000000 per 5 minutes" for name in _LIMITS}

_TRIES = 5


class BenchService(Service):
    """The service with its embedded database, which measurements also query directly."""

    # Seconds to wait for the start: an upgrade compares each user of a large database.
    PATIENCE = 600

    def __init__(self, state_dir: Path, checkout: str = "", **environment: str) -> None:
        """Another checkout is run by its own `.venv`."""
        environment.setdefault("AUTH_WORKERS", str(WORKERS))
        # The shipped default; services of the tests hash at the lowest cost.
        environment.setdefault("AUTH_BCRYPT_COST", "10")
        command = [f"{checkout}/.venv/bin/python", *GUNICORN] if checkout else None
        super().__init__(state_dir, command=command, directory=checkout or CHECKOUT, user=None, **environment)

    def __exit__(self, *_: object) -> None:
        super().__exit__()
        # A directory that is kept would collect tens of megabytes with each run.
        for log in (self._output, self._log):
            log.unlink(missing_ok=True)

    def database(self) -> Connection:
        """Return a connection that commits each statement."""
        connection = psycopg2.connect(running_postgres_url(self.state_dir))
        connection.autocommit = True
        return connection

    def value(self, statement: str, *parameters: Any) -> Any:
        """Return the single value of a query."""
        connection = self.database()
        with connection.cursor() as cursor:
            cursor.execute(statement, parameters)
            row = cursor.fetchone()
        connection.close()
        return row and row[0]

    def post(
        self, path: str, body: dict[str, Any], *, source: str = "127.0.0.1", **headers: str
    ) -> tuple[int, dict[str, Any]]:
        """Post JSON from one of this machine's addresses, and return the status and body of the response."""
        connection = http.client.HTTPConnection(
            "127.0.0.1", self.port, timeout=30, source_address=(source, 0)
        )
        try:
            connection.request(
                "POST", path, json.dumps(body), {"Content-Type": "application/json", **headers}
            )
            response = connection.getresponse()
            return response.status, json.loads(response.read())
        finally:
            connection.close()


def balanced_load(
    service: Service, requests: Callable[[], Sequence[str]], *, seconds: float, **options: Any
) -> load.Load:
    """Send requests as `load.run`, over connections of which each worker has half its share at least.

    A worker may accept most of those that arrive at once; then others are opened, for new requests.
    """
    for _ in range(_TRIES):
        with load.sending(service.port, requests(), **options) as stop:
            time.sleep(seconds / 10)
            if _is_balanced(service, options.get("connections", load.CONNECTIONS)):
                time.sleep(seconds * 9 / 10)
                return stop()
    return load.run(service.port, requests(), seconds=seconds, **options)


def _is_balanced(service: Service, connections: int) -> bool:
    table = Path("/proc/net/tcp")
    if not table.exists():
        return True
    rows = [line.split() for line in table.read_text().splitlines()[1:]]
    established = {
        f"socket:[{row[9]}]" for row in rows if row[1].endswith(f":{service.port:04X}") and row[3] == "01"
    }
    numbers = [len(sockets_of(pid) & established) for pid in children_of(service.process.pid)]
    return sum(number >= connections // (2 * WORKERS) for number in numbers) >= WORKERS


def processor_seconds(pid: int) -> float:
    """Return the time that a process and its descendants have spent on processors. Linux only."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return 0.0
    own = (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
    return own + sum(map(processor_seconds, children_of(pid)))


class Constant(Service):
    """The constant answer, with the worker class and the number of workers of the service."""

    def __init__(self, state_dir: Path, body_length: int) -> None:
        command = [
            sys.executable,
            "-m",
            "gunicorn",
            "--config",
            "bench/constant.conf.py",
            "bench.constant:app",
        ]
        super().__init__(
            state_dir, command=command, AUTH_WORKERS=str(WORKERS), CONSTANT_BODY_LENGTH=str(body_length)
        )

    def _is_healthy(self) -> bool:
        try:
            return self.get("/constant")[0] == 200
        except (OSError, http.client.HTTPException):
            return False


@contextmanager
def new_state_dir() -> Iterator[Path]:
    """Create a state directory on the disk of the checkout: on a RAM disk, commits would be too fast."""
    parent = CHECKOUT / "var"
    parent.mkdir(mode=0o711, exist_ok=True)
    with TemporaryDirectory(prefix="bench-", dir=parent) as directory:
        Path(directory).chmod(0o711)
        yield Path(directory) / "var"
