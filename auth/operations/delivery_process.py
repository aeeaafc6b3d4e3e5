"""Starts, restarts and stops the delivery process in the gunicorn master."""

import signal
import subprocess
import sys
import time
from collections.abc import Callable
from functools import partial

from auth.operations.embedded_postgres import signal_when_parent_dies

_COMMAND = [sys.executable, "-W", "ignore", "-m", "auth.delivery"]
# All in seconds. The process waits five for messages in flight when it stops.
_STOP_LIMIT = 6.0
_FIRST_PAUSE = 1.0
_LONGEST_PAUSE = 10.0


class DeliveryProcess:
    """Signal handlers call `watch` and `end`, which may therefore interrupt the other methods."""

    def __init__(self, say: Callable[[str], None], *, delivers: bool = True) -> None:
        self._say = say
        self._command = _COMMAND if delivers else [*_COMMAND, "metrics"]
        self._process: subprocess.Popen | None = None
        self._is_watched = False
        self._started_at = 0.0
        self._pause = 0.0
        self._restart_at: float | None = None
        self._kill_at: float | None = None

    def start(self) -> None:
        self._is_watched = False
        self._started_at = time.monotonic()
        self._restart_at = None
        try:
            self._process = self._launch()
        except OSError as error:
            # Running out of memory or processes must not end the master.
            self._process = None
            self._say(f"The delivery process cannot be started: {error.strerror}.")
        self._is_watched = self._kill_at is None

    def reload(self, *, is_wanted: bool) -> None:
        """Start another process while the old one finishes its messages."""
        self._is_watched = False
        if self._process:
            self._process.terminate()
            self._process = None
        if is_wanted:
            self.start()

    def watch(self) -> None:
        """Restart the process if it has died, with backoff. To be called every second."""
        if not self._is_watched or self._is_running():
            return
        now = time.monotonic()
        if self._restart_at is None:
            has_lasted = now - self._started_at > _LONGEST_PAUSE
            self._pause = (
                _FIRST_PAUSE if has_lasted else min(max(self._pause * 2, _FIRST_PAUSE), _LONGEST_PAUSE)
            )
            self._restart_at = now + self._pause
            self._say(f"The delivery process has died. Starting it again in {self._pause:.0f} s.")
        elif now >= self._restart_at:
            self.start()

    def end(self) -> None:
        self._is_watched = False
        self._kill_at = self._kill_at or time.monotonic() + _STOP_LIMIT
        if self._process:
            self._process.terminate()

    def stop(self) -> None:
        """End the process and wait; kill it after `_STOP_LIMIT`."""
        self.end()
        while self._process and self._is_running():
            if time.monotonic() > (self._kill_at or 0):
                self._process.kill()
            time.sleep(0.05)

    def _is_running(self) -> bool:
        return self._process is not None and self._process.poll() is None

    def _launch(self) -> subprocess.Popen:
        return subprocess.Popen(  # noqa: S603
            self._command,
            stdin=subprocess.DEVNULL,
            start_new_session=True,  # Ctrl-C must reach only the master
            preexec_fn=partial(signal_when_parent_dies, signal.SIGTERM),
        )
