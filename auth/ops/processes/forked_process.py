"""A child process that shares the memory of the gunicorn master."""

import os
import select
import signal
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from typing import NoReturn

import gevent
import structlog
from gevent.monkey import get_original

from auth.core.log_writer import writer
from auth.ops.processes.prctl import name_process

_start_thread = get_original("_thread", "start_new_thread")
_sleep = get_original("time", "sleep")


class ForkedProcess:
    """A fork that runs a function and ends.

    The fork alone holds the writing end of a pipe, into which it writes every second. The kernel closes the
    pipe before the fork can be reaped. While the pipe is open, the process id is the fork's: gunicorn reaps
    all children, but only in its main loop, which calls these methods too.
    """

    def __init__(self, name: str, run: Callable[[], object]) -> None:
        """Raises `OSError`."""
        self.beat_at = time.monotonic()
        parent = os.getpid()
        self._pipe, writing_end = os.pipe()
        os.set_blocking(self._pipe, False)
        # Block signals until the fork has its own handlers: the master's would swallow them.
        mask = signal.pthread_sigmask(signal.SIG_BLOCK, signal.valid_signals())
        try:
            self._pid = os.fork()
            if self._pid == 0:
                _run(name, run, parent, writing_end, mask)
        except OSError:
            os.close(self._pipe)
            raise
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, mask)
            os.close(writing_end)

    def has_ended(self) -> bool:
        """Whether the process has ended. Reads its heartbeats."""
        if self._pipe < 0:
            return True
        with suppress(BlockingIOError):
            while os.read(self._pipe, 4096):
                self.beat_at = time.monotonic()
            os.close(self._pipe)
            self._pipe = -1
        return self._pipe < 0

    def send(self, number: signal.Signals) -> None:
        """Send a signal, unless the process has ended: its id may be that of another one then."""
        if not self.has_ended():
            os.kill(self._pid, number)

    def wait(self, seconds: float) -> bool:
        """Return whether the process ends within some seconds."""
        deadline = time.monotonic() + seconds
        while not self.has_ended():
            if time.monotonic() >= deadline:
                return False
            select.select([self._pipe], [], [], max(0.0, deadline - time.monotonic()))
        return True


def _run(
    name: str, run: Callable[[], object], parent: int, pipe: int, mask: set[int | signal.Signals]
) -> NoReturn:
    """Run the function in the fork, which does not return into gunicorn's code."""
    try:
        _replace_descriptors(pipe)
        gevent.reinit()
        os.setsid()  # Ctrl-C must reach only the master
        _reset_signals()
        name_process(name)
        _start_thread(_beat, (pipe, parent))  # signals stay blocked in this thread
        signal.pthread_sigmask(signal.SIG_SETMASK, mask)
        run()
    except BaseException as error:
        structlog.get_logger().error("process_failed", process=name, exc_info=error)
    finally:
        try:
            writer.finish()
        finally:
            os._exit(0)  # without what the master does at its end


def _replace_descriptors(pipe: int) -> None:
    """Put /dev/null in the place of the master's descriptors, such as sockets and locks.

    If they were closed, the numbers would be used again, and the master's objects, which this process has
    too, might close them.
    """
    logs = {stream.fileno() for stream in (sys.stdout, sys.stderr) if stream}
    with open(os.devnull, "r+b") as null:
        for number in {int(name) for name in os.listdir("/dev/fd")} - {pipe, *logs}:
            os.dup2(null.fileno(), number)


def _reset_signals() -> None:
    """Reset the master's handlers, as `exec` would."""
    for number in signal.valid_signals():
        if callable(signal.getsignal(number)):
            signal.signal(number, signal.SIG_DFL)
    # `systemctl kill --signal HUP` signals all processes. At a reload, the master replaces this one.
    signal.signal(signal.SIGHUP, signal.SIG_IGN)


def _beat(pipe: int, parent: int) -> None:
    """Write to the master every second; end this process when the master has ended.

    It runs in a native thread, because on a busy machine a round of greenlets may take long.
    """
    with suppress(BrokenPipeError):
        while os.getppid() == parent:
            os.write(pipe, b".")
            _sleep(1)
    os.kill(os.getpid(), signal.SIGTERM)
