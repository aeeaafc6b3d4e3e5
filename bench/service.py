"""The service as `make run` starts it."""

import http.client
import json
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import psycopg2
from psycopg2.extensions import connection as Connection

from auth.core.cores import cores
from auth.core.settings.state import running_postgres_url
from bench import load
from bench.load import Load
from tests.support.processes import CHECKOUT, GUNICORN, Service, children_of, sockets_of

WORKERS = cores()
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

# How often to connect for an equal share, and the seconds that workers may take to accept.
_TRIES, _ACCEPTED_WITHIN = 5, 0.5


class BenchService(Service):
    """The service with its embedded database, which measurements also query directly."""

    # Seconds to wait for the start: an upgrade compares each user of a large database.
    PATIENCE = 600

    def __init__(
        self, state_dir: Path, checkout: str = str(CHECKOUT), python: str = sys.executable, **environment: str
    ) -> None:
        """Run another checkout, or with another Python, that has the packages."""
        environment.setdefault("AUTH_WORKERS", str(WORKERS))
        # The shipped default; services of the tests hash at the lowest cost.
        environment.setdefault("AUTH_BCRYPT_COST", "10")
        super().__init__(state_dir, command=[python, *GUNICORN], directory=checkout, **environment)

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

    def service_role_key(self) -> str:
        return (self.state_dir / "service_role_key").read_text().strip()

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


def balanced_load(service: Service, requests: Sequence[str], **options: Any) -> Load:
    """Send requests as `load.run`, over connections of which each worker has half its share at least.

    A worker may accept most of those that arrive at once; then others are opened.
    """
    for last in (False,) * _TRIES + (True,):
        with load.connected(service.port, requests, **options) as clients:
            if last or _is_balanced(service, clients.connections):
                return clients.run()
    raise AssertionError


def _is_balanced(service: Service, connections: int) -> bool:
    table = Path("/proc/net/tcp")
    if not table.exists():
        return True
    deadline = time.monotonic() + _ACCEPTED_WITHIN
    while True:
        rows = [line.split() for line in table.read_text().splitlines()[1:]]
        established = {
            f"socket:[{row[9]}]" for row in rows if row[1].endswith(f":{service.port:04X}") and row[3] == "01"
        }
        numbers = [len(sockets_of(pid) & established) for pid in children_of(service.process.pid)]
        if sum(numbers) >= connections or time.monotonic() > deadline:
            return sum(number >= connections // (2 * WORKERS) for number in numbers) >= WORKERS


@contextmanager
def new_state_dir() -> Iterator[Path]:
    """Create a state directory on the disk of the checkout: on a RAM disk, commits would be too fast."""
    parent = CHECKOUT / "var"
    parent.mkdir(mode=0o711, exist_ok=True)
    with TemporaryDirectory(prefix="bench-", dir=parent) as directory:
        Path(directory).chmod(0o711)
        yield Path(directory) / "var"
