"""The delivery process: started by the gunicorn master, restarted when it dies, stopped with the service."""

import os
import signal
import subprocess
import sys
import time
from functools import partial

from auth.operations.embedded_postgres import signal_when_parent_dies

_COMMAND = [sys.executable, "-W", "ignore", "-m", "auth.delivery"]
# glibc would keep up to eight heaps per core for the threads of the process.
_ENVIRONMENT = {"MALLOC_ARENA_MAX": "2"}
# Seconds. The process itself gives the messages in flight five.
_STOP_LIMIT = 6.0
_FIRST_PAUSE = 1.0
_LONGEST_PAUSE = 60.0


class DeliveryProcess:
    """At most one process at a time, a child of the one that calls `start`."""

    def __init__(self) -> None:
        self._process: subprocess.Popen | None = None
        self._started_at = 0.0
        self._pause = 0.0
        self._restart_at: float | None = None
        self._stop_at: float | None = None

    def start(self) -> None:
        """Start the process in a session of its own, so that Ctrl-C reaches it through the master alone."""
        self._started_at = time.monotonic()
        self._restart_at = None
        self._process = subprocess.Popen(  # noqa: S603
            _COMMAND,
            env=os.environ | _ENVIRONMENT,
            stdin=subprocess.DEVNULL,
            start_new_session=True,
            preexec_fn=partial(signal_when_parent_dies, signal.SIGTERM),
        )

    def reload(self, *, is_wanted: bool) -> None:
        """Let the process finish what it is sending, and start another one beside it."""
        if self._process:
            self._process.terminate()
            self._process = None
        if is_wanted:
            self.start()

    def watch(self) -> None:
        """Start the process again when it has died, after a pause that doubles. To be called every second."""
        if self._process is None or self._stop_at is not None or self._process.poll() is None:
            return
        now = time.monotonic()
        if self._restart_at is None:
            has_lasted = now - self._started_at > _LONGEST_PAUSE
            self._pause = (
                _FIRST_PAUSE if has_lasted else min(max(self._pause * 2, _FIRST_PAUSE), _LONGEST_PAUSE)
            )
            self._restart_at = now + self._pause
            print(
                f"The delivery process has died. Starting it again in {self._pause:.0f} s.",
                file=sys.stderr,
                flush=True,
            )
        elif now >= self._restart_at:
            self.start()

    def end(self) -> None:
        """Tell the process to end, and do not start it again."""
        if self._stop_at is None:
            self._stop_at = time.monotonic() + _STOP_LIMIT
            if self._process:
                self._process.terminate()

    def stop(self) -> None:
        """Wait for the end of the process; kill it when it takes too long."""
        self.end()
        while self._process and self._process.poll() is None:
            if time.monotonic() > (self._stop_at or 0):
                self._process.kill()
            time.sleep(0.05)
