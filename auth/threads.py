"""Threads for work that nobody waits for the outcome of."""

import queue
import threading
import traceback
from collections.abc import Callable
from typing import Any

import structlog

from auth import scheduling

log = structlog.get_logger()


class Threads:
    """So many threads, all started at once: when a crowd has come, nobody has the time to wait for threads to start.

    What `concurrent.futures` makes for each piece of work, so that others may wait for it or call it off, takes longer than many a request.
    """

    def __init__(self, number: int) -> None:
        self._threads: list[threading.Thread] = []
        self._work: queue.SimpleQueue[Callable[[], Any] | None] = queue.SimpleQueue()
        try:
            for each in range(number):
                thread = threading.Thread(target=self._go_on, name=f"request-{each}")
                thread.start()
                self._threads.append(thread)
        except RuntimeError:
            # The system refuses more of them. Those that there are would keep the process from its end.
            self.shutdown()
            raise

    def run(self, work: Callable[[], Any]) -> None:
        """Have a thread do this, as soon as one is free."""
        self._work.put(work)

    def shutdown(self) -> None:
        """Let the threads end when they have done what there is. Python waits for them before it ends, so nobody needs to."""
        for _ in self._threads:
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
