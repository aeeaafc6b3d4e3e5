"""Starts, restarts and stops the delivery process in the gunicorn master."""

import itertools
import os
import signal
import time
from collections.abc import Callable
from functools import partial

from auth.core.settings import served
from auth.core.settings.state import METRICS_SLOT
from auth.ops.processes.forked_process import ForkedProcess

# What `top`, `pgrep` and `ps -o comm` call it; it has the command line of the master.
NAME = "auth.delivery"
# All in seconds. The process waits five for messages in flight when it stops.
_STOP_LIMIT = 6.0
_FIRST_PAUSE = 1.0
_LONGEST_PAUSE = 10.0


class DeliveryProcess:
    """The fork calls `run`."""

    def __init__(self, say: Callable[[str], None], run: Callable[[], object]) -> None:
        self._say = say
        self._run = run
        self._process: ForkedProcess | None = None
        # Processes by their slot for metrics. After a reload, replaced ones still finish their messages.
        self._processes: dict[int, ForkedProcess] = {}
        self._is_wanted = False
        self._started_at = 0.0
        self._pause = _FIRST_PAUSE / 2
        self._restart_at: float | None = None
        self._kill_at: float | None = None

    def start(self) -> None:
        self._is_wanted, self._started_at, self._restart_at = True, time.monotonic(), None
        try:
            self._process = self._launch()
        except OSError as error:
            # A lack of memory or processes must not end the master.
            self._process = None
            self._say(f"Can't start the delivery process: {error.strerror}.")

    def watch(self) -> None:
        """Restart the process if it has died, with backoff. Call it every second."""
        self._processes = {slot: each for slot, each in self._processes.items() if not each.has_ended()}
        now = time.monotonic()
        has_lasted = now - self._started_at > _LONGEST_PAUSE
        if not self._is_wanted or (self._process and not self._process.has_ended()):
            if has_lasted:
                served.delivery_fails[0] = False
            return
        if self._restart_at is None:
            self._pause = _FIRST_PAUSE if has_lasted else min(self._pause * 2, _LONGEST_PAUSE)
            served.delivery_fails[0] = self._pause > _FIRST_PAUSE
            self._restart_at = now + self._pause
            self._say(f"The delivery process died. Restarting it in {self._pause:.0f} s.")
        elif now >= self._restart_at:
            self.start()

    def kill_if_frozen(self, seconds: int) -> None:
        """Kill the process if its last heartbeat is older."""
        if not self._process or self._process.has_ended():
            return
        if time.monotonic() - self._process.beat_at > seconds:
            self._say(f"The delivery process has not responded for {seconds} s. Killing it.")
            self._process.send(signal.SIGKILL)

    def terminate(self) -> None:
        """Tell the process to finish its messages and end. It is not restarted."""
        self._is_wanted = False
        if self._process:
            self._process.send(signal.SIGTERM)

    def begin_stop(self) -> None:
        """Terminate the process. `stop` will not wait longer than `_STOP_LIMIT` from now."""
        self.terminate()
        self._kill_at = time.monotonic() + _STOP_LIMIT

    def stop(self) -> None:
        """Wait until the process has ended; kill it `_STOP_LIMIT` after `begin_stop`."""
        if self._kill_at is None:
            self.begin_stop()
        if self._process and not self._process.wait((self._kill_at or 0.0) - time.monotonic()):
            self._process.send(signal.SIGKILL)
            self._process.wait(_STOP_LIMIT)

    def _launch(self) -> ForkedProcess:
        slot = next(slot for slot in itertools.count() if slot not in self._processes)
        self._processes[slot] = ForkedProcess(NAME, partial(self._deliver, slot))
        return self._processes[slot]

    def _deliver(self, slot: int) -> None:
        os.environ[METRICS_SLOT] = f"delivery-{slot}"
        self._run()
