"""What is measured: the service as `make run` starts it, and the constant answer beside it, in the same
gunicorn.
"""

import http.client
import json
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import psycopg2
from psycopg2.extensions import connection as Connection

from auth.settings.state import running_postgres_url
from tests.support.processes import CHECKOUT, Service

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
# Counting is paid for, and nothing is refused.
RAISED = {f"AUTH_RATE_LIMIT_{name}": "1000000000 per 5 minutes" for name in _LIMITS}


class BenchService(Service):
    """The service with a database of its own, of which the measurements ask what the API doesn't tell."""

    # An upgrade looks at each user of a large database.
    PATIENCE = 600

    def __init__(self, state_dir: Path, **environment: str) -> None:
        environment.setdefault("AUTH_WORKERS", str(WORKERS))
        super().__init__(state_dir, command=None, user=None, **environment)

    def __exit__(self, *_: object) -> None:
        super().__exit__()
        # A directory that stays would keep tens of megabytes of each run.
        for log in (self._output, self._log):
            log.unlink(missing_ok=True)

    def database(self) -> Connection:
        """Return a connection that commits each statement."""
        connection = psycopg2.connect(running_postgres_url(self.state_dir))
        connection.autocommit = True
        return connection

    def value(self, statement: str, *parameters: Any) -> Any:
        """Return the one value that a statement answers."""
        connection = self.database()
        with connection.cursor() as cursor:
            cursor.execute(statement, parameters)
            row = cursor.fetchone()
        connection.close()
        return row and row[0]

    def post(
        self, path: str, body: dict[str, Any], *, source: str = "127.0.0.1", **headers: str
    ) -> tuple[int, dict[str, Any]]:
        """Send one request from an address of this machine, and return the status and what was answered."""
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


class Constant(Service):
    """The constant answer, in the service's worker and with as many processes."""

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
    """A directory for a service, on the disk that its own would be on: one in memory would commit in no time."""
    parent = CHECKOUT / "var"
    parent.mkdir(mode=0o711, exist_ok=True)
    with TemporaryDirectory(prefix="bench-", dir=parent) as directory:
        Path(directory).chmod(0o711)
        yield Path(directory) / "var"
