"""Native threads that hash for a worker."""

import os
import sys
import threading
import time
from collections.abc import Callable
from functools import cached_property, partial
from typing import Any, TypeVar

T = TypeVar("T")

# Native threads per worker. Their priority is low, so that log-ins do not slow down other requests.
THREADS = 2
NICENESS = 13
_STUCK_AFTER = 20.0  # seconds without a finished hash, which takes four at the dearest cost, 16


class HashingThreads:
    """Runs derivations: in native threads under gevent, otherwise in the thread of the caller."""

    def __init__(self) -> None:
        self.semaphore: Callable[[int], Any] = threading.Semaphore
        self._make_pool: Callable[[], Any] | None = None
        self._moved_at = 0.0  # when a hash finished, or the first one began
        monkey = sys.modules.get("gevent.monkey")
        if monkey is not None and monkey.is_module_patched("threading"):
            from gevent.lock import Semaphore
            from gevent.threadpool import ThreadPool

            self.semaphore, self._make_pool = Semaphore, partial(ThreadPool, THREADS)

    @cached_property
    def _pool(self) -> Any:
        """Created by a worker for its first hash: gevent may forget the tasks of a pool that the master
        created."""
        return self._make_pool and self._make_pool()

    def run(self, work: Callable[[], T]) -> T:
        """Run `work` in the pool, if there is one, and return its result."""
        if self._pool is None:
            return work()
        if len(self._pool) == 0:  # no hash runs or waits
            self._moved_at = time.monotonic()
        result: T = self._pool.apply(self._derive, (work,))
        return result

    def is_stuck(self) -> bool:
        """Whether no hash has finished for 20 seconds, though some wait."""
        some_wait = self._pool is not None and len(self._pool) > THREADS
        return some_wait and time.monotonic() - self._moved_at > _STUCK_AFTER

    def _derive(self, work: Callable[[], T]) -> T:
        if sys.platform == "linux":  # where threads have priorities
            # An ordinary process that was started at a lower priority may not raise it.
            niceness = max(NICENESS, os.getpriority(os.PRIO_PROCESS, 0))
            os.setpriority(os.PRIO_PROCESS, 0, niceness)
        try:
            return work()
        finally:
            self._moved_at = time.monotonic()
