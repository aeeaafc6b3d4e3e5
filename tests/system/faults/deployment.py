"""The real service with a Postgres, a mail server and clients, as the subject of faults."""

import contextlib
import random
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import count
from pathlib import Path
from typing import Any, Self

import httpx

from tests.support import log_watch
from tests.support.contract import description
from tests.support.environment import ENVIRONMENT
from tests.support.postgres import Postgres
from tests.support.processes import Service, short_directory, wait_until
from tests.support.server import ServerClient
from tests.support.tables import Rows
from tests.system.faults import clients, invariants
from tests.system.faults.history import History
from tests.system.faults.mail import Post

_seeds = count(1)


class Balancer(ServerClient):
    """Sends each request to any of several services that accepts the connection."""

    def __init__(self, *services: Service) -> None:
        self._behind = [ServerClient(service.port) for service in services]
        super().__init__(services[0].port)

    def open(self, path: str, method: str = "GET", **options: Any) -> Any:
        clients_in_order = random.sample(self._behind, len(self._behind))
        for client in clients_in_order[:-1]:
            with contextlib.suppress(httpx.ConnectError):
                return client.open(path, method, **options)
        return clients_in_order[-1].open(path, method, **options)

    def set_cookie(self, name: str, value: str) -> None:
        for client in self._behind:
            client.set_cookie(name, value)

    def close(self) -> None:
        super().close()
        for client in self._behind:
            client.close()


class Deployment:
    """A Postgres and a mail server, inside the context; tests add services and clients. `disk` is the
    directory of the database.
    """

    def __init__(self, disk: Path | None = None, **options: str) -> None:
        self._disk = disk
        self._options = options

    def __enter__(self) -> Self:
        description()  # reading it would count as a slow answer
        self._opened = contextlib.ExitStack()
        directory = self._opened.enter_context(short_directory())
        self.state_dir = directory / "var"
        # Writes of Postgres survive its death without fsync, and no test waits for a slow disk.
        self.postgres = Postgres((self._disk or directory) / "database", fsync="off", **self._options)
        self._opened.callback(lambda: self.postgres.stop())  # which may be another by then
        self.post = self._opened.enter_context(Post())
        return self

    def __exit__(self, *_: object) -> None:
        self._opened.close()

    @contextmanager
    def service(self, command: list[str] | None = None, **changes: str) -> Iterator[Service]:
        """Run the service with two workers and delivery; all services of a deployment share their secrets.

        `PATIENT_GUNICORN` is for tests in which no request may fail: Postgres may stall on a busy machine.
        """
        settings: dict[str, Any] = {
            **ENVIRONMENT,
            "DATABASE_URL": self.postgres.url,
            "AUTH_DELIVER": "true",
            "AUTH_SMTP_URL": self.post.url,
        }
        service = Service(self.state_dir, command=command, **{**settings, **changes})
        try:
            with service:
                yield service
        finally:
            log = service.text()
            print(*(line for line in log.splitlines() if "unexpected_failure" in line), sep="\n")
            log_watch.scan_log("a service", log)

    def client(self, service: Service) -> ServerClient:
        """Return a client, which is closed at the end."""
        return self._opened.enter_context(contextlib.closing(ServerClient(service.port)))

    def rows(self) -> Rows:
        """Return the tables; the connection is closed at the end."""
        return self._opened.enter_context(contextlib.closing(Rows(self.postgres.url)))

    @contextmanager
    def load(self, *services: Service, clients_count: int = 6) -> Iterator[History]:
        """Run clients inside the context; each of their requests goes to any of the services."""
        history = History(Balancer(*services))
        with clients.load(history, self.post, clients_count, next(_seeds)):
            # The fault must hit a running load.
            wait_until(lambda: history.answered() > 30, 30)
            yield history

    def check(self, history: History) -> None:
        """Check everything against the history, after the service has recovered."""
        with contextlib.closing(history.client), contextlib.closing(Rows(self.postgres.url)) as rows:
            wait_until(lambda: history.client.get("/health").status_code == 200, 30)
            invariants.check(history, self.post, rows)


def serves_again(history: History) -> Callable[[], Any]:
    """Return a condition that is true once the service has answered further requests."""
    before = history.answered()
    return lambda: history.answered() > before + 5
