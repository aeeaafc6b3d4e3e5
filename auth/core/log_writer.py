"""Writes what a serving process logs and prints, in a thread: nothing else waits for the reader of the log.

A full pipe, a stopped terminal and a log daemon that hangs block each write. O_NONBLOCK would not help: it
belongs to the open file, which other programs share.
"""

import _thread
import atexit
import io
import os
import queue
import select
import sys
import time
from collections.abc import Callable, Iterator
from functools import partial
from types import ModuleType
from typing import Any

from auth.core import event_lines

_MOST = 4_000  # lines that wait to be written: seconds of a busy worker. Newer ones are dropped and counted.
_PAUSE = 0.02  # seconds in which the lines of a busy worker gather, to be written together
_FORK_PATIENCE, _EXIT_PATIENCE = 0.1, 0.5  # seconds

Line = tuple[int, bytes]  # the descriptor to write to, and the text


def _native(module: ModuleType, name: str) -> Any:
    """Return what gevent may have replaced."""
    if "gevent.monkey" in sys.modules:
        from gevent.monkey import get_original

        return get_original(module.__name__, name)
    return getattr(module, name)


_make_queue = _native(queue, "SimpleQueue")
_make_lock = _native(_thread, "allocate_lock")
_start_thread = _native(_thread, "start_new_thread")
_sleep = _native(time, "sleep")


class LogWriter:
    """Writes at once, and from `start` on in a native thread.

    Then `write` never waits and takes no lock: signal handlers and all threads may call it.
    """

    def __init__(self) -> None:
        # `logs.configure` sets it to the format of the log.
        self.as_line: Callable[[str], str] = event_lines.before_settings
        self._has_started = False
        self._begin()

    def _begin(self) -> None:
        """Begin without lines. The parent of a fork writes those that it had."""
        self._lines: queue.SimpleQueue[Line | None] = _make_queue()  # None ends the thread
        self._running = _make_lock()  # held while there is a thread
        self.lost = self._reported = 0

    def start(self) -> None:
        """Replace the standard streams, for all that gunicorn and Python print."""
        if sys.stderr is not sys.__stderr__:  # a reload starts it again; a test of a command captures them
            return
        self._has_started = True
        for name in ("stdout", "stderr"):
            if stream := getattr(sys, name):  # None if its descriptor is closed
                stream.flush()
                raw: Any = _Stream(stream.fileno(), is_log=name == "stderr")
                encoding = "utf-8" if name == "stderr" else stream.encoding
                queued = io.TextIOWrapper(raw, encoding, stream.errors, line_buffering=True)
                setattr(sys, name, queued)
        # The thread ends before a fork, unless a write hangs; the fork has none.
        os.register_at_fork(before=partial(self.finish, _FORK_PATIENCE), after_in_child=self._begin)
        atexit.register(self.finish)

    def write(self, descriptor: int, line: bytes) -> None:
        """Write a whole line. Raises `OSError` before `start`."""
        if not self._has_started:
            os.write(descriptor, line)
            return
        if self._lines.qsize() < _MOST:
            self._lines.put((descriptor, line))
        else:
            self.lost += 1
        self._ensure_thread()

    def finish(self, patience: float = _EXIT_PATIENCE) -> None:
        """Write all lines and end the thread, unless that takes longer than `patience` (seconds)."""
        if self._running.locked():
            self._lines.put(None)
            if self._running.acquire(timeout=patience):
                self._running.release()

    def _ensure_thread(self) -> None:
        if self._running.acquire(blocking=False):
            try:
                _start_thread(self._run, ())
            except RuntimeError:  # the system has no thread left; the next line tries again
                self._running.release()

    def _run(self) -> None:
        gathers_until, ends = 0.0, False
        while not ends:
            batch = [self._lines.get()]
            if time.monotonic() < gathers_until:
                _sleep(_PAUSE)
            batch += [self._lines.get() for _ in range(self._lines.qsize())]
            ends = None in batch
            lines = [line for line in batch if line]
            if missing := self.lost - self._reported:
                self._reported += missing
                warning = f"The log was not read: {missing} lines of this process are lost."
                lines.append((sys.stderr.fileno(), f"{self.as_line(warning)}\n".encode()))
            for descriptor, data in _joined(lines):
                _write(descriptor, data)
            gathers_until = time.monotonic() + _PAUSE
        self._running.release()
        if not self._lines.empty():
            self._ensure_thread()


def _joined(lines: list[Line]) -> Iterator[Line]:
    """Join as many lines as a pipe takes at once, without lines of other processes in between."""
    descriptor, data = 0, b""
    for other, line in lines:
        if data and (other != descriptor or len(data) + len(line) > select.PIPE_BUF):
            yield descriptor, data
            data = b""
        descriptor, data = other, data + line
    yield descriptor, data


def _write(descriptor: int, data: bytes) -> None:
    while data:
        try:
            data = data[os.write(descriptor, data) :]
        except OSError:  # such as a full disk, which may have room again
            _sleep(_PAUSE)


class _Stream(io.RawIOBase):
    """Writes whole lines. In the log, those of libraries and tracebacks get its format."""

    def __init__(self, descriptor: int, *, is_log: bool) -> None:
        self._descriptor = descriptor
        self._is_log = is_log

    def write(self, text: Any, /) -> int:
        data = bytes(text)
        if self._is_log:
            # Not `splitlines`, which breaks a line at U+2028, too.
            lines = io.StringIO(data.decode(errors="replace"), newline="\n")
            data = "".join(map(_in_format, lines)).encode()
        writer.write(self._descriptor, data)
        return len(text)

    def writable(self) -> bool:
        return True

    def fileno(self) -> int:
        return self._descriptor

    def isatty(self) -> bool:
        return os.isatty(self._descriptor)


def _in_format(line: str) -> str:
    """Return a line in the format of the log, without blank ones between events."""
    text = line.rstrip("\n")
    if event_lines.take(text):
        return f"{text}\n"
    if (result := writer.as_line(text)) == text:
        return line
    for each in result.split("\n"):
        event_lines.take(each)
    return f"{result}\n" if text.strip() else ""


writer = LogWriter()
