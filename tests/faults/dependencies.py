"""Companions of Postgres in larger deployments: a synchronous replica, PgBouncer, and Patroni."""

import json
import os
import pwd
import shutil
import signal
import socket
import subprocess
import urllib.request
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Any, Self

from psycopg2.extensions import parse_dsn

from auth.operations.embedded_postgres import EmbeddedPostgres, find_programs
from auth.operations.postgres_account import choose_account
from tests.faults.deployment import Deployment
from tests.support.postgres import Postgres
from tests.support.processes import as_user, children_of, free_port, send, wait_until
from tests.support.programs import find_program

_NO_PATRONI = "NOTHING IS TESTED UNDER PATRONI"
# The shortest times that Patroni allows.
_TIMES = {"ttl": 20, "loop_wait": 2, "retry_timeout": 3}
_PASSWORD = "a password of these tests"


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


def url_of_both(one: Postgres, two: Postgres) -> str:
    """Return the URL that leads to the writable one of two servers."""
    hosts = ",".join(parse_dsn(postgres.url)["host"].replace("/", "%2F") for postgres in (one, two))
    return f"postgresql://postgres@/postgres?host={hosts}&port=5432,5432&target_session_attrs=read-write"


class PgBouncer:
    """PgBouncer with transaction pooling in front of a deployment's Postgres, inside the context."""

    def __init__(self, deployment: Deployment) -> None:
        program = find_program("pgbouncer", "pgbouncer", "NOTHING IS TESTED BEHIND PGBOUNCER")
        socket_dir = Path(parse_dsn(deployment.postgres.url)["host"])
        self._port = port = free_port()
        self.url = f"postgresql://postgres@127.0.0.1:{port}/postgres?sslmode=disable"
        self._file = deployment.state_dir.parent / "pgbouncer.ini"
        self._file.write_text(
            f"[databases]\n* = host={socket_dir} port=5432 user=postgres\n[pgbouncer]\nlisten_addr = 127.0.0.1\nlisten_port = {port}\n"
            "auth_type = any\npool_mode = transaction\ndefault_pool_size = 10\nmax_client_conn = 200\nunix_socket_dir =\n"
        )
        # PgBouncer refuses to run as root, and must be able to open the socket.
        owner = pwd.getpwuid(socket_dir.stat().st_uid).pw_name
        self._how = as_user(owner if os.geteuid() == 0 else None)
        self._program = program

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.kill()

    def start(self) -> None:
        self._process = subprocess.Popen(
            [self._program, "-q", str(self._file)],
            **self._how,
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


class PatroniNode:
    """A Postgres and the Patroni that runs it."""

    def __init__(self, name: str, directory: Path, etcd_port: int, account: str | None) -> None:
        self.name, self.port = name, free_port()
        self._api_port = free_port()
        self._account = account
        self._config = directory / f"{name}.json"
        self._log = directory / f"{name}.log"
        trust = [f"host {database} all 127.0.0.1/32 trust" for database in ("all", "replication")]
        accounts = {"superuser": "postgres", "replication": "replicator", "rewind": "rewinder"}
        parameters = {"synchronous_commit": "on", "max_connections": 60}
        cluster = {"synchronous_mode": True, "postgresql": {"use_pg_rewind": True, "parameters": parameters}}
        postgres = {
            "listen": f"127.0.0.1:{self.port}",
            "data_dir": str(directory / name),
            "bin_dir": str(find_programs()),
            "pgpass": str(directory / f"{name}.pgpass"),
            "pg_hba": trust,
            "parameters": {"unix_socket_directories": ""},
            "authentication": {
                kind: {"username": user, "password": _PASSWORD} for kind, user in accounts.items()
            },
        }
        config = {
            "scope": "latchkey",
            "name": name,
            "restapi": {"listen": f"127.0.0.1:{self._api_port}"},
            "etcd3": {"host": f"127.0.0.1:{etcd_port}"},
            "bootstrap": {"dcs": _TIMES | cluster, "initdb": [{"encoding": "UTF8"}, {"locale": "C"}]},
            "postgresql": postgres,
        }
        self._config.write_text(json.dumps(config))

    def start(self) -> None:
        program = find_program("patroni", "patroni", _NO_PATRONI)
        with self._log.open("ab") as log:
            self._process = subprocess.Popen(
                [program, str(self._config)],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
                **as_user(self._account),
            )

    def kill(self) -> None:
        """Kill Patroni and all processes of its Postgres at once, like a power failure."""
        data = self._config.with_suffix("")
        pids = [self._process.pid]
        with suppress(OSError, IndexError):
            postmaster = int((data / "postmaster.pid").read_text().split()[0])
            pids += [postmaster, *children_of(postmaster)]
        for pid in pids:
            send(pid, signal.SIGKILL)
        self._process.wait()

    def stop(self) -> None:
        if self._process.poll() is None:
            self._process.terminate()
            self._process.wait(30)

    def is_a(self, role: str) -> bool:
        """Return whether it is the `primary`, or a synchronous `replica`."""
        state = self._state()
        is_ready = role == "primary" or "sync_standby" in state
        return (state.get("role"), state.get("state")) == (role, "running") and is_ready

    def _state(self) -> dict[str, Any]:
        url = f"http://127.0.0.1:{self._api_port}/patroni"
        with suppress(OSError, ValueError), urllib.request.urlopen(url, timeout=2) as answer:
            return json.load(answer)
        return {}


class PatroniCluster:
    """A primary and a synchronous replica, inside the context. It stands in for the Postgres of a deployment."""

    def __init__(self, directory: Path) -> None:
        directory.mkdir(mode=0o755)
        etcd = find_program("etcd", "etcd-server", _NO_PATRONI)
        account = choose_account(directory).pw_name if os.geteuid() == 0 else None
        port, peer_port = free_port(), free_port()
        if account:
            shutil.chown(directory, account)
        peer = f"http://127.0.0.1:{peer_port}"
        client = f"http://127.0.0.1:{port}"
        self._etcd_command = [etcd, "--data-dir", str(directory / "etcd"), "--log-level", "error"]
        self._etcd_command += ["--listen-client-urls", client, "--advertise-client-urls", client]
        self._etcd_command += ["--listen-peer-urls", peer, "--initial-advertise-peer-urls", peer]
        self._etcd_command += ["--initial-cluster", f"default={peer}"]
        self.nodes = [PatroniNode(name, directory, port, account) for name in ("one", "two")]
        hosts = ",".join(f"127.0.0.1:{node.port}" for node in self.nodes)
        self.url = f"postgresql://postgres@{hosts}/postgres?target_session_attrs=read-write"

    def __enter__(self) -> Self:
        with ExitStack() as stack:
            quiet: Any = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
            etcd = subprocess.Popen(self._etcd_command, **quiet)
            stack.callback(etcd.wait, 10)
            stack.callback(etcd.terminate)
            for node in self.nodes:
                node.start()
                stack.callback(node.stop)
            self.wait_for("replica")
            self._running = stack.pop_all()
        return self

    def __exit__(self, *_: object) -> None:
        self._running.close()

    stop = __exit__

    def wait_for(self, role: str) -> PatroniNode:
        """Return the `primary`, or the synchronous `replica`, once there is one."""

        def found() -> list[PatroniNode]:
            return [node for node in self.nodes if node.is_a(role)]

        return wait_until(found, 120)[0]
