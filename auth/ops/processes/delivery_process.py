"""Starts, restarts and stops the delivery process in the gunicorn master."""

import itertools
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable

from gunicorn.config import Config
from gunicorn.workers.workertmp import WorkerTmp

from auth.core.settings import served
from auth.core.settings.state import HEARTBEAT, METRICS_SLOT
from auth.ops import CHECKOUT
from auth.ops.processes.embedded_postgres import signal_when_parent_dies

_COMMAND = [sys.executable, "-W", "ignore", "-m", "auth.delivery"]
# All in seconds. The process waits five for messages in flight when it stops.
_STOP_LIMIT = 6.0
_FIRST_PAUSE = 1.0
_LONGEST_PAUSE = 10.0


class DeliveryProcess:
    """`config` is gunicorn's. The heartbeat file is of the same kind as those of its workers."""

    def __init__(self, say: Callable[[str], None], config: Config) -> None:
        self._say = say
        self._config = config
        self._heartbeat: WorkerTmp | None = None
        self._arguments: tuple[str, ...] = ()
        self._process: subprocess.Popen | None = None
        # Processes by their slot for metrics. After a reload, replaced ones still finish their messages.
        self._processes: dict[int, subprocess.Popen] = {}
        self._is_wanted = False
        self._started_at = 0.0
        self._pause = _FIRST_PAUSE / 2
        self._restart_at: float | None = None
        self._kill_at: float | None = None

    def start(self, *arguments: str) -> None:
        self._is_wanted, self._arguments = True, arguments
        self._started_at, self._restart_at = time.monotonic(), None
        try:
            self._process = self._launch()
        except OSError as error:
            # A lack of memory or processes must not end the master.
            self._process = None
            self._say(f"Can't start the delivery process: {error.strerror}.")

    def watch(self) -> None:
        """Restart the process if it has died, with backoff. Call it every second."""
        now = time.monotonic()
        has_lasted = now - self._started_at > _LONGEST_PAUSE
        if not self._is_wanted or (self._process and self._process.poll() is None):
            if has_lasted:
                served.delivery_fails[0] = False
            return
        if self._restart_at is None:
            self._pause = _FIRST_PAUSE if has_lasted else min(self._pause * 2, _LONGEST_PAUSE)
            served.delivery_fails[0] = self._pause > _FIRST_PAUSE
            self._restart_at = now + self._pause
            self._say(f"The delivery process died. Restarting it in {self._pause:.0f} s.")
        elif now >= self._restart_at:
            self.start(*self._arguments)

    def kill_if_frozen(self, seconds: int) -> None:
        """Kill the process if its last heartbeat is older. A process that is starting has none yet."""
        if not (self._process and self._heartbeat) or self._process.poll() is not None:
            return
        # A new file has a time of the wall clock, which is later than any of the monotonic clock.
        if time.monotonic() - self._heartbeat.last_update() > seconds:
            self._say(f"The delivery process has not responded for {seconds} s. Killing it.")
            self._process.kill()

    def terminate(self) -> None:
        """Tell the process to finish its messages and end. It is not restarted."""
        self._is_wanted = False
        if self._process:
            self._process.terminate()

    def begin_stop(self) -> None:
        """Terminate the process. `stop` will not wait longer than `_STOP_LIMIT` from now."""
        self.terminate()
        self._kill_at = time.monotonic() + _STOP_LIMIT

    def stop(self) -> None:
        """Wait until the process has ended; kill it `_STOP_LIMIT` after `begin_stop`."""
        if self._kill_at is None:
            self.begin_stop()
        if self._process:
            try:
                self._process.wait(max(0.0, (self._kill_at or 0.0) - time.monotonic()))
            except subprocess.TimeoutExpired:
                self._process.kill()
                self._process.wait()
        if self._heartbeat:
            self._heartbeat.close()

    def _launch(self) -> subprocess.Popen:
        taken_slots = {slot for slot, process in self._processes.items() if process.poll() is None}
        slot = next(slot for slot in itertools.count() if slot not in taken_slots)
        # With PYTHONSAFEPATH, Python does not look into the current directory.
        import_directories = dict.fromkeys(
            [str(CHECKOUT), *filter(None, os.environ.get("PYTHONPATH", "").split(os.pathsep))]
        )
        if self._heartbeat:
            self._heartbeat.close()
        # A new file: the previous process may still finish its messages.
        self._heartbeat = WorkerTmp(self._config)
        environment = {
            "PYTHONPATH": os.pathsep.join(import_directories),
            METRICS_SLOT: f"delivery-{slot}",
            HEARTBEAT: str(self._heartbeat.fileno()),
        }
        self._processes[slot] = subprocess.Popen(  # noqa: S603
            [*_COMMAND, *self._arguments],
            env=os.environ | environment,
            stdin=subprocess.DEVNULL,
            pass_fds=[self._heartbeat.fileno()],
            start_new_session=True,  # Ctrl-C must reach only the master
            preexec_fn=_prepare,
        )
        return self._processes[slot]


def _prepare() -> None:
    """Run in the process, before its program."""
    signal_when_parent_dies(signal.SIGTERM)
    # `systemctl kill --signal HUP` signals all processes. At a reload, the master replaces this one.
    signal.signal(signal.SIGHUP, signal.SIG_IGN)
