"""Companions of Postgres in larger deployments: a synchronous replica, and PgBouncer."""

import os
import pwd
import socket
import subprocess
from pathlib import Path
from typing import Self

from psycopg2.extensions import parse_dsn

from auth.ops.processes.embedded_postgres import EmbeddedPostgres, find_programs
from tests.support.postgres import Postgres
from tests.support.processes import as_user, free_port, wait_until
from tests.support.programs import find_program
from tests.system.faults.deployment import Deployment


class _Standby(EmbeddedPostgres):
    """A server that counts as ready when it follows another one."""

    def _is_ready(self, pid: int) -> bool:
        try:
            lines = (self._data / "postmaster.pid").read_text().splitlines()
        except FileNotFoundError:
            return False
        return len(lines) > 7 and lines[7].strip() in ("ready", "standby")


class Replica(Postgres):
    """Follows the Postgres of a deployment synchronously: an acknowledged commit was written by both."""

    def __init__(self, primary: Postgres, directory: Path) -> None:
        directory.mkdir()
        backup = [
            str(find_programs() / "pg_basebackup"),
            "-D",
            str(directory / "postgres"),
            "-d",
            primary.url,
        ]
        subprocess.run([*backup, "-R", "-X", "stream", "-c", "fast"], check=True, capture_output=True)
        # The backup includes the lock of the primary's socket, which is in its directory.
        (directory / "postgres" / ".s.PGSQL.5432.lock").unlink(missing_ok=True)
        self._server = _Standby(directory, {"max_connections": "40", "fsync": "off"})
        self.url = self._server.start()
        primary.run("ALTER SYSTEM SET synchronous_standby_names = '*'", "SELECT pg_reload_conf()")
        wait_until(
            lambda: primary.run("SELECT count(*) FROM pg_stat_replication WHERE sync_state = 'sync'") == (1,)
        )

    def promote(self) -> None:
        assert self.run("SELECT pg_promote()") == (True,)


def url_of_both(first: Postgres, second: Postgres) -> str:
    """Return the URL for the writable one of two servers."""
    hosts = ",".join(parse_dsn(postgres.url)["host"].replace("/", "%2F") for postgres in (first, second))
    return f"postgresql://postgres@/postgres?host={hosts}&port=5432,5432&target_session_attrs=read-write"


class PgBouncer:
    """PgBouncer in front of a deployment's Postgres, inside the context."""

    def __init__(self, deployment: Deployment, pool_mode: str = "transaction") -> None:
        program = find_program("pgbouncer", "pgbouncer", "NOTHING IS TESTED BEHIND PGBOUNCER")
        socket_dir = Path(parse_dsn(deployment.postgres.url)["host"])
        self._port = port = free_port()
        self.url = f"postgresql://postgres@127.0.0.1:{port}/postgres?sslmode=disable"
        self._file = deployment.state_dir.parent / "pgbouncer.ini"
        self._file.write_text(
            f"[databases]\n* = host={socket_dir} port=5432 user=postgres\n[pgbouncer]\nlisten_addr = 127.0.0.1\nlisten_port = {port}\n"
            f"auth_type = any\npool_mode = {pool_mode}\ndefault_pool_size = 10\nmax_client_conn = 200\nunix_socket_dir =\n"
        )
        # PgBouncer refuses to run as root, and must be able to open the socket.
        owner = pwd.getpwuid(socket_dir.stat().st_uid).pw_name
        self._options_of_process = as_user(owner if os.geteuid() == 0 else None)
        self._program = program

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.kill()

    def start(self) -> None:
        self._process = subprocess.Popen(
            [self._program, "-q", str(self._file)],
            **self._options_of_process,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        wait_until(self._listens)

    def _listens(self) -> bool:
        try:
            socket.create_connection(("127.0.0.1", self._port)).close()
        except OSError:
            return False
        return True

    def kill(self) -> None:
        self._process.kill()
        self._process.wait()
