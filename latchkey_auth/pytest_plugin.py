"""The fixture `latchkey`: a real service for tests of an application; docs/testing.md.

All xdist workers share one test server, which ends when the process that reports ends, however it does.
"""

import contextlib
import errno
import json
import os
import shutil
import subprocess
import tempfile
from pathlib import Path
from typing import Any

import pytest

from latchkey_auth.testing import Control, Latchkey, LatchkeyError, launch

_INPUT = "latchkey"  # the name of the directory in the input of xdist's workers
_PREFIX = "latchkey-pytest-"


class _Run:
    """A run of pytest with its test server, which the first test with the fixture starts."""

    def __init__(self, directory: str | None) -> None:
        self._directory = directory
        self._made: Path | None = None
        # Keeps the test server alive. A forked process must not, nor the next program.
        self._lifeline: int | None = None
        self._process: subprocess.Popen[str] | None = None

    @property
    def directory(self) -> Path:
        if self._directory:
            return Path(self._directory)
        if self._made is None:
            _remove_abandoned()
            self._made = Path(tempfile.mkdtemp(prefix=_PREFIX))
            os.mkfifo(self._made / "new", 0o600)
            self._lifeline = os.open(self._made / "new", os.O_RDWR)
            os.rename(self._made / "new", self._made / "lifeline")
            os.register_at_fork(after_in_child=self._close)
        return self._made

    def start(self, settings: dict[str, str]) -> Latchkey:
        """Start a service, and the test server unless another worker has."""
        import fcntl

        file = self.directory / "server.json"
        with (self.directory / "lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            if not file.exists():
                with (self.directory / "lifeline").open("rb") as lifeline:
                    command = os.environ.get("LATCHKEY_COMMAND")
                    self._process, server = launch(command, lifeline, self.directory / "log")
                file.write_text(json.dumps(server))
        server = json.loads(file.read_text(encoding="utf-8"))
        return Control(server["control"], server["key"]).start(settings)

    def end(self) -> None:
        """End the test server, unless this is a worker."""
        if self._made is None:
            return
        with contextlib.suppress(OSError, LatchkeyError):
            server = json.loads((self._made / "server.json").read_text(encoding="utf-8"))
            Control(server["control"], server["key"]).call("stop")
        self._close()
        if self._process:
            self._process.wait()
        shutil.rmtree(self._made, ignore_errors=True)

    def _close(self) -> None:
        if self._lifeline is not None:
            os.close(self._lifeline)
            self._lifeline = None


def _remove_abandoned() -> None:
    """Remove the directories of runs that were killed: nothing reads from their lifelines."""
    for lifeline in Path(tempfile.gettempdir()).glob(f"{_PREFIX}*/lifeline"):
        try:
            os.close(os.open(lifeline, os.O_WRONLY | os.O_NONBLOCK))
        except OSError as error:
            if error.errno == errno.ENXIO:
                shutil.rmtree(lifeline.parent, ignore_errors=True)


_RUN = pytest.StashKey[_Run]()


def pytest_configure(config: pytest.Config) -> None:
    config.stash[_RUN] = _Run(getattr(config, "workerinput", {}).get(_INPUT))


@pytest.hookimpl(optionalhook=True)
def pytest_configure_node(node: Any) -> None:
    """Tell an xdist worker the directory."""
    node.workerinput[_INPUT] = str(node.config.stash[_RUN].directory)


def pytest_unconfigure(config: pytest.Config) -> None:
    if run := config.stash.get(_RUN, None):
        run.end()


@pytest.fixture(scope="session")
def latchkey_settings() -> dict[str, str]:
    """The settings of the service. Override this fixture to choose other settings."""
    return {}


@pytest.fixture(scope="session")
def latchkey_server(request: pytest.FixtureRequest, latchkey_settings: dict[str, str]) -> Latchkey:
    """The service, for fixtures of the session. It is not reset."""
    return request.config.stash[_RUN].start(latchkey_settings)


@pytest.fixture
def latchkey(latchkey_server: Latchkey) -> Latchkey:
    """The service, without users and messages at the start of each test."""
    latchkey_server.reset()
    return latchkey_server
