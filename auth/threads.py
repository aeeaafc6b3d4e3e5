"""Threads for work that nobody waits for the outcome of."""

import queue
import threading
import traceback
from collections.abc import Callable
from typing import Any

import structlog

from auth import scheduling
from auth.tally import Tally

log = structlog.get_logger()
_not_started = Tally("thread_not_started")


class Threads:
    """At most so many threads, started when they are needed: all of them from the beginning take more memory, and each is cold when it is used.

    What `concurrent.futures` makes for each piece of work, so that others may wait for it or call it off, takes longer than many a request.
    """

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._started = 0
        self._work: queue.SimpleQueue[Callable[[], Any] | None] = queue.SimpleQueue()

    def run(self, work: Callable[[], Any], unfinished: int) -> None:
        """Have a thread do this; `unfinished` is how much work there is now, this included. To be called by one thread alone."""
        if self._started < min(unfinished, self._limit):
            try:
                threading.Thread(target=self._go_on, name=f"request-{self._started + 1}").start()
                self._started += 1
            # The system has none left. It is asked again for the next piece of work; until then those go on that there are.
            except RuntimeError:
                _not_started.count()
        self._work.put(work)

    def shutdown(self) -> None:
        """Let the threads end when they have done what there is. Python waits for them before it ends, so nobody needs to."""
        for _ in range(self._started):
            self._work.put(None)

    def _go_on(self) -> None:
        while (work := self._work.get()) is not None:
            try:
                work()
            # Whatever it is, and be it SystemExit: the thread is needed for other work.
            except BaseException as error:
                where = [f"{frame.filename}:{frame.lineno}" for frame in traceback.extract_tb(error.__traceback__)]
                log.error("thread_failed", error=type(error).__name__, where=where)
            # What it held is not to be held until there is other work.
            del work
            # One that went on at once with what waits could keep others, in the middle of theirs, from their turn for a second.
            scheduling.let_others_run()
