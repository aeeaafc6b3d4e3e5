"""Fixtures that the conftest.py of faults and trials import."""

import subprocess
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from auth.ops.processes.embedded_postgres import EmbeddedPostgresError
from tests.support import oldest_release, previous_release
from tests.support.processes import Service
from tests.system.faults.deployment import Deployment


@pytest.fixture(scope="session", autouse=True)
def _patient_pool() -> None:
    """Override the pool fixture of the other tests."""


@pytest.fixture(scope="session")
def files_of_the_release_before(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The service of the release before, as an upgrade finds it."""
    return oldest_release.unpack(tmp_path_factory.mktemp("before"), previous_release.COMMIT)


@pytest.fixture
def deployment() -> Iterator[Deployment]:
    if not Path("/proc/self/task").exists():
        pytest.skip("NO FAULT IS TESTED: this looks for processes in /proc, which only Linux has")
    try:
        with Deployment() as deployment:
            yield deployment
    except EmbeddedPostgresError as error:
        pytest.skip(f"NO FAULT IS TESTED: {error}")


@pytest.fixture
def service(environment, state_dir, database) -> Callable[..., Service]:
    """Make a service that delivers, with the secrets and the database of the tests."""
    shared = {name: environment[name] for name in environment.keys() - {"AUTH_STATE_DIR", "AUTH_DELIVER"}}
    return lambda **changes: Service(state_dir, **shared, **changes)


@pytest.fixture
def small_disk() -> Iterator[Path]:
    """A file system with little more room than a database needs."""
    with tempfile.TemporaryDirectory(prefix="latchkey-tests-") as directory:
        command = ["mount", "-t", "tmpfs", "-o", "size=160m,mode=755", "tmpfs", directory]
        if subprocess.run(command, capture_output=True, check=False).returncode != 0:
            pytest.skip(
                "NO DISK IS FULL IN THESE TESTS: this needs root, and a machine where it may mount a tmpfs"
            )
        yield Path(directory)
        subprocess.run(["umount", "--lazy", directory], check=True)
