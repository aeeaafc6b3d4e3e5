"""Clients' addresses, a Redis, and services started by tests."""

import shutil
import signal
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import redis

from auth.core.settings import kept_secrets
from tests.support import log_watch
from tests.support.processes import PATIENT_GUNICORN, Service, free_port, short_directory, wait_until
from tests.support.programs import find_program
from tests.support.server import ServerClient
from tests.support.tables import Rows

HOME = "198.51.100.7"
OFFICE = "203.0.113.20"
ELSEWHERE = "192.0.2.66"


def at(address: str) -> dict[str, Any]:
    """Return options that make the test client send from an address: `client.get("/user", **at(HOME))`."""
    return {"environ_overrides": {"REMOTE_ADDR": address}}


class Redis:
    """A Redis server that can be stopped, frozen and started again; stopping it deletes its data."""

    def __init__(self, program: str) -> None:
        self._program = program
        self.port = free_port()
        self.url = f"redis://127.0.0.1:{self.port}/0"
        self.start()

    def start(self) -> None:
        options = f"--port {self.port} --bind 127.0.0.1 --appendonly no --dir {tempfile.gettempdir()}"
        command = [self._program, *options.split(), "--save", ""]
        null = subprocess.DEVNULL
        self.process = subprocess.Popen(command, stdin=null, stdout=null, stderr=null)
        wait_until(self._answers)

    def stop(self) -> None:
        self.process.kill()
        self.process.wait()

    def freeze(self) -> None:
        self.process.send_signal(signal.SIGSTOP)

    def thaw(self) -> None:
        self.process.send_signal(signal.SIGCONT)

    def client(self) -> redis.Redis:
        return redis.Redis(host="127.0.0.1", port=self.port)

    def _answers(self) -> bool:
        try:
            with self.client() as client:
                return bool(client.ping())
        except redis.RedisError:
            return False


@pytest.fixture(scope="session")
def redis_server() -> Iterator[Redis]:
    server = Redis(find_program("redis-server", "redis-server", "NOTHING IS TESTED WITH REDIS"))
    yield server
    server.stop()


@pytest.fixture
def new_state_dir() -> Iterator[Path]:
    """A state directory for a service with its own secrets and database."""
    with short_directory() as directory:
        yield directory / "var"


@pytest.fixture(scope="session")
def serve(environment, state_dir: Path, all_rows: Rows) -> Any:
    """Start a service with the secrets and the database of `app`: `with serve(AUTH_WORKERS="1") as (service,
    client)`. Its state directory is its own: commands refuse to act with other settings than a service of theirs.
    """

    shared = {name: value for name, value in environment.items() if name != "AUTH_STATE_DIR"}

    class Serving:
        def __init__(self, command: list[str] | None = None, **changes: str) -> None:
            self._directory = tempfile.TemporaryDirectory(prefix="latchkey-tests-")
            directory = Path(self._directory.name).resolve() / "var"
            shutil.copytree(
                state_dir, directory, ignore=lambda _, names: {*names} - {*kept_secrets.FILES.values()}
            )
            self.service = Service(directory, command=command, **shared | changes)

        def __enter__(self) -> tuple[Service, ServerClient]:
            # A test that used no rows may have left the fingerprints of its service's keys.
            all_rows.leave()
            self.service.__enter__()
            self.client = ServerClient(self.service.port, self.service.address)
            return self.service, self.client

        def __exit__(self, *_: object) -> None:
            self.client.close()
            self.service.__exit__()
            log_watch.scan_log("a service", self.service.log())
            self._directory.cleanup()

    return Serving


@pytest.fixture(scope="session")
def limited_service(serve) -> Iterator[ServerClient]:
    limits = {"AUTH_RATE_LIMITS_ENABLED": "true", "AUTH_RATE_LIMIT_LOGIN": "20 per 5 minutes"}
    with serve(PATIENT_GUNICORN, **limits) as (_, client):
        yield client


@pytest.fixture
def limited_server(limited_service: ServerClient, database, app) -> ServerClient:
    """gunicorn with two workers and all limits: `LOGIN` is 20 in five minutes, the others have their
    defaults.
    """
    return limited_service
