"""The service as `make run` starts it, and the constant answer, served by the same gunicorn worker."""

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
# Requests are counted, but never refused.
RAISED = {f"AUTH_RATE_LIMIT_{name}": "1000000000 per 5 minutes" for name in _LIMITS}


class BenchService(Service):
    """The service with its embedded database, which measurements also query directly."""

    # Seconds to wait for the start: an upgrade compares each user of a large database.
    PATIENCE = 600

    def __init__(self, state_dir: Path, **environment: str) -> None:
        environment.setdefault("AUTH_WORKERS", str(WORKERS))
        # The shipped default; services of the tests hash at the lowest cost.
        environment.setdefault("AUTH_BCRYPT_COST", "10")
        super().__init__(state_dir, command=None, user=None, **environment)

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
