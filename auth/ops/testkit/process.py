"""The processes of a test service, with its own settings."""

import http.client
import os
import signal
import subprocess
import sys
import threading
import time
from contextlib import closing
from functools import partial
from pathlib import Path

from flask import Flask

from app import create_app
from auth.core import settings
from auth.core.net.sockets import free_port
from auth.core.settings import name_of, running
from auth.core.settings.values.hooks import NAMES
from auth.ops import GUNICORN
from auth.ops.processes.prctl import signal_when_parent_dies
from auth.ops.testkit import Refused

_SETTINGS = {
    "AUTH_BCRYPT_COST": "4",
    "AUTH_LOG_LEVEL": "warning",
    "AUTH_RATE_LIMITS_ENABLED": "false",
    "AUTH_WEBHOOK_PRIVATE_NETWORKS": "true",
    "AUTH_WORKERS": "1",
}
# The rest of the environment may belong to another application with its own database.
_NAMES = ("PATH", "HOME", "LANG", "TMPDIR", "PYTHONPATH", "PYTHONSAFEPATH")
_INHERITED = {name: os.environ[name] for name in _NAMES if name in os.environ}
_PATIENCE = 60  # seconds until the service has started
_CAPTURED = "capture"
# Settings are read from the environment of this process.
_environment_lock = threading.Lock()


class Process:
    """Create it in the main thread: on Linux, it ends with the thread that started it.

    Hooks whose setting is `capture` get URLs below `captures`, and the secret.
    """

    def __init__(
        self, state_dir: Path, database_url: str, variables: dict[str, str], captures: str, secret: str
    ) -> None:
        self.state_dir = state_dir
        self._port = int(variables.get("PORT") or free_port())
        own = {"AUTH_BIND": "127.0.0.1", "AUTH_DELIVER": "false", "AUTH_STATE_DIR": str(state_dir)}
        own["DATABASE_URL"] = database_url
        for name in variables:
            if name in own:
                raise Refused(f"{name} is set by the test server")
            if not name.startswith("AUTH_") and name != "PORT":
                raise Refused(f"{name} is not a setting of the service")
        hooks = {}
        for field, hook in NAMES.items():
            if variables.get(name_of(f"hook_{field}")) == _CAPTURED:
                hooks[name_of(f"hook_{field}")] = f"{captures}/{hook}"
                hooks[name_of(f"hook_{field}_secrets")] = secret
        self._environment = _INHERITED | _SETTINGS | variables | hooks | own | {"PORT": str(self._port)}
        self._process = subprocess.Popen(  # noqa: S603
            [sys.executable, *GUNICORN, "auth.ops.testkit.wsgi:app"],
            cwd=state_dir,
            env=self._environment,
            stdin=subprocess.DEVNULL,
            stdout=sys.stderr,
            start_new_session=True,  # Ctrl-C must reach only the test server
            preexec_fn=partial(signal_when_parent_dies, signal.SIGTERM),
        )

    def wait(self) -> Flask:
        """Wait until the service answers, and return an application with its settings. Raises `Refused`."""
        deadline = time.monotonic() + _PATIENCE
        # Another program may have the port.
        while not (running.is_serving(self.state_dir) and _answers(self._port)):
            if self._process.poll() is not None or time.monotonic() > deadline:
                raise Refused(running.last_error(self.state_dir) or "The service did not start; see its log")
            time.sleep(0.02)
        with _environment_lock:
            own = dict(os.environ)
            os.environ.clear()
            os.environ.update(self._environment)
            try:
                return create_app(settings.load(os.devnull))
            finally:
                os.environ.clear()
                os.environ.update(own)

    def end(self) -> None:
        self._process.terminate()

    def join(self) -> None:
        try:
            self._process.wait(15)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()


def _answers(port: int) -> bool:
    with closing(http.client.HTTPConnection("127.0.0.1", port, timeout=5)) as connection:
        try:
            connection.request("GET", "/health")
            return connection.getresponse().status == 200
        except (OSError, http.client.HTTPException):
            return False
