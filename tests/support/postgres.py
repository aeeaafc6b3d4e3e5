"""A Postgres of the tests' own: to freeze, to stop in every way, to fill."""

import contextlib
import os
import signal
import time
from pathlib import Path
from typing import Any

import psycopg2
from psycopg2.extensions import make_dsn

from auth.operations.embedded_postgres import EmbeddedPostgres
from tests.support.processes import children_of, is_running, wait_until


class Postgres:
    """A server that can be frozen, stopped and started again. Raises `EmbeddedPostgresError` where there is
    none for this machine.
    """

    def __init__(self, directory: Path, **options: str) -> None:
        self._server = EmbeddedPostgres(directory, {"max_connections": "40", **options})
        self.url = self._server.start()

    def start(self) -> None:
        assert self._server.start() == self.url

    def stop(self) -> None:
        self._server.stop()

    def end(self, number: int) -> None:
        """End it by a signal to its first process: SIGINT (fast), SIGQUIT (immediate) or SIGKILL."""
        pids = self.processes()
        os.kill(pids[0], number)
        # Of a killed one the sessions end a moment later; before that nothing can be started on their data.
        wait_until(lambda: self._server.has_died() and not any(map(is_running, pids)), 30)
        self._server.stop()

    def kill(self) -> None:
        """End all of it at once, as a machine that is switched off."""
        self.signal(signal.SIGKILL)
        wait_until(self._server.has_died)

    def has_ended(self) -> bool:
        """Whether it has ended by itself."""
        return self._server.has_died()

    def signal(self, number: int) -> None:
        """Send a signal to each of its processes."""
        for pid in self.processes():
            # One of a session may have ended meanwhile.
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, number)

    def freeze(self) -> None:
        self.signal(signal.SIGSTOP)

    def thaw(self) -> None:
        self.signal(signal.SIGCONT)

    def run(self, *statements: str) -> Any:
        """Run statements one by one; return the first row of the last one."""
        connection = psycopg2.connect(self.url, options="-c default_transaction_read_only=off")
        connection.autocommit = True
        with connection.cursor() as cursor:
            for statement in statements:
                cursor.execute(statement)
            row = cursor.fetchone() if cursor.description else None
        connection.close()
        return row

    def processes(self) -> list[int]:
        """Return its processes, the first one first."""
        assert self._server._process is not None
        master = self._server._process.pid
        return [master, *children_of(master)]

    def take_all(self) -> list[Any]:
        """Return connections of ours, all that there are: until they are closed nobody else has or gets one."""
        # While its database is closed to all, even to its owner, a client can't take the place of one that
        # was ended.
        url = make_dsn(self.url, dbname="template1")
        taken = [psycopg2.connect(url)]
        taken[0].autocommit = True
        with taken[0].cursor() as cursor:
            cursor.execute("ALTER DATABASE postgres ALLOW_CONNECTIONS false")

            def are_ours() -> bool:
                cursor.execute(
                    "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = 'postgres'"
                )
                ended, had = cursor.rowcount, len(taken)
                with contextlib.suppress(psycopg2.OperationalError):
                    while True:
                        taken.append(psycopg2.connect(url))
                # Who is about to be refused has a place until then.
                time.sleep(0.2)
                return ended == 0 and len(taken) == had

            try:
                wait_until(are_ours, 20)
            finally:
                cursor.execute("ALTER DATABASE postgres ALLOW_CONNECTIONS true")
        return taken
