"""A Postgres of the tests' own, which they freeze, stop, kill and fill."""

import contextlib
import os
import signal
import time
from pathlib import Path
from typing import Any

import psycopg2
from psycopg2.extensions import make_dsn

from auth.ops.processes.embedded_postgres import EmbeddedPostgres
from tests.support.environment import CLOCK
from tests.support.processes import children_of, is_running, send, wait_until


class Postgres:
    """A server that can be frozen, stopped and started again. Raises `EmbeddedPostgresError` on machines
    without one.
    """

    def __init__(self, directory: Path, **options: str) -> None:
        self._server = EmbeddedPostgres(directory, {"max_connections": "40", **options}, CLOCK)
        self.url = self._server.start()

    def start(self) -> None:
        assert self._server.start() == self.url

    def stop(self) -> None:
        self._server.stop()

    def signal_postmaster(self, number: int) -> None:
        """Shut down by a signal to the first process: SIGINT (fast), SIGQUIT (immediate) or SIGKILL."""
        pids = self.processes()
        os.kill(pids[0], number)
        # The backends of a killed Postgres end a moment later; until then none can start on their data.
        wait_until(lambda: self._server.has_died() and not any(map(is_running, pids)), 30)
        self._server.stop()

    def kill(self) -> None:
        """Kill all processes at once."""
        self.signal(signal.SIGKILL)
        wait_until(self._server.has_died)

    def has_ended(self) -> bool:
        """Return whether it has ended by itself."""
        return self._server.has_died()

    def signal(self, number: int) -> None:
        """Send a signal to each of its processes."""
        if number != signal.SIGCONT:
            send(self.processes()[0], signal.SIGSTOP)  # it starts no other process meanwhile
        for pid in self.processes():
            send(pid, number)

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
        """Return the pids of its processes, the first one first."""
        assert self._server._process is not None
        master = self._server._process.pid
        return [master, *children_of(master)]

    def take_all(self) -> list[Any]:
        """Take all connections of the server, and return them; until they are closed, no client has or gets
        one.
        """
        # Close the database to all roles meanwhile, so that no client takes the place of a terminated
        # connection.
        url = make_dsn(self.url, dbname="template1")
        connections = [psycopg2.connect(url)]
        connections[0].autocommit = True
        with connections[0].cursor() as cursor:
            cursor.execute("ALTER DATABASE postgres ALLOW_CONNECTIONS false")

            def are_ours() -> bool:
                cursor.execute(
                    "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = 'postgres'"
                )
                terminated, before = cursor.rowcount, len(connections)
                with contextlib.suppress(psycopg2.OperationalError):
                    while True:
                        connections.append(psycopg2.connect(url))
                # A client that is about to be refused still has a slot until then.
                time.sleep(0.2)
                return terminated == 0 and len(connections) == before

            try:
                wait_until(are_ours, 20)
            finally:
                cursor.execute("ALTER DATABASE postgres ALLOW_CONNECTIONS true")
        return connections
