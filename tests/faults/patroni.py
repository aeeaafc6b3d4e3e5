"""Two Postgres servers under Patroni, with etcd, in processes of their own."""

import json
import os
import shutil
import signal
import subprocess
import urllib.request
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Any, Self

from auth.operations.embedded_postgres import find_programs
from auth.operations.postgres_account import choose_account
from tests.support.processes import as_user, children_of, free_port, send, wait_until
from tests.support.programs import find_program

_MISSING = "NOTHING IS TESTED UNDER PATRONI"
# The shortest times that Patroni allows.
_TIMES = {"ttl": 20, "loop_wait": 2, "retry_timeout": 3}
_PASSWORD = "a password of these tests"


class Node:
    """A Postgres and the Patroni that runs it."""

    def __init__(self, name: str, directory: Path, etcd_port: int, account: str | None) -> None:
        self.name, self.port = name, free_port()
        self._api_port = free_port()
        self._account = account
        self._config = directory / f"{name}.json"
        self._log = directory / f"{name}.log"
        trust = [f"host {database} all 127.0.0.1/32 trust" for database in ("all", "replication")]
        accounts = {"superuser": "postgres", "replication": "replicator", "rewind": "rewinder"}
        self._config.write_text(
            json.dumps(
                {
                    "scope": "latchkey",
                    "name": name,
                    "restapi": {"listen": f"127.0.0.1:{self._api_port}"},
                    "etcd3": {"host": f"127.0.0.1:{etcd_port}"},
                    "bootstrap": {
                        "dcs": _TIMES
                        | {
                            "synchronous_mode": True,
                            "postgresql": {
                                "use_pg_rewind": True,
                                "parameters": {"synchronous_commit": "on", "max_connections": 60},
                            },
                        },
                        "initdb": [{"encoding": "UTF8"}, {"locale": "C"}],
                    },
                    "postgresql": {
                        "listen": f"127.0.0.1:{self.port}",
                        "data_dir": str(directory / name),
                        "bin_dir": str(find_programs()),
                        "pgpass": str(directory / f"{name}.pgpass"),
                        "pg_hba": trust,
                        "parameters": {"unix_socket_directories": ""},
                        "authentication": {
                            kind: {"username": user, "password": _PASSWORD} for kind, user in accounts.items()
                        },
                    },
                }
            )
        )

    def start(self) -> None:
        program = find_program("patroni", "patroni", _MISSING)
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


class Cluster:
    """A primary and a synchronous replica, inside the context. It stands in for the Postgres of a deployment."""

    def __init__(self, directory: Path) -> None:
        directory.mkdir(mode=0o755)
        etcd = find_program("etcd", "etcd-server", _MISSING)
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
        self.nodes = [Node(name, directory, port, account) for name in ("one", "two")]
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

    def wait_for(self, role: str) -> Node:
        """Return the `primary`, or the synchronous `replica`, once there is one."""

        def found() -> list[Node]:
            return [node for node in self.nodes if node.is_a(role)]

        return wait_until(found, 120)[0]
