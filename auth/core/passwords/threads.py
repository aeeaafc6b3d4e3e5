"""Native threads that hash for a worker, and a watch that ends a worker whose hashing hangs."""

import os
import signal
import sys
import threading
import time
from collections import deque
from collections.abc import Callable
from typing import Any, NoReturn, TypeVar

import structlog

T = TypeVar("T")

# Native threads of a worker. Their priority is low, so that log-ins do not slow down other requests.
THREADS = 2
_NICENESS = 13
# Seconds of CPU time that no check takes at cost 10, where a hash of four log-ins takes 0.3. Each step of the
# cost doubles them.
_MOST_COMPUTED = 4.0
_LIMIT = 20.0  # seconds after which a derivation hangs; above cost 12, a little more than `_MOST_COMPUTED`
_TICK = 0.5
# The part of the last ticks that a thread computes at least, even if overloaded cores starve it.
_LEAST, _TICKS = 0.01, 10
# Seconds for which a worker whose hashing hangs still accepts requests, and then finishes them.
_NOTICE, _GRACE = 1.0, 2.0

log = structlog.get_logger()


class HashingThreads:
    """Runs derivations: in native threads under gevent, otherwise in the thread of the caller."""

    def __init__(self, cost: int) -> None:
        """`cost` is that of bcrypt."""
        self.is_stuck = False
        # Called by the watch, in its native thread, when hashing hangs.
        self.when_stuck: list[Callable[[], None]] = []
        self._most_computed = _MOST_COMPUTED * max(1, 2 ** (cost - 10))
        self._limit = max(_LIMIT, 1.25 * self._most_computed)
        self._running: set[_Derivation] = set()
        self.semaphore: Callable[[int], Any] = threading.Semaphore
        monkey = sys.modules.get("gevent.monkey")
        self._is_native = monkey is not None and monkey.is_module_patched("threading")
        if self._is_native:
            from gevent.lock import Semaphore
            from gevent.monkey import get_original
            from gevent.threadpool import ThreadPool

            self.semaphore = Semaphore
            self._pool = ThreadPool(THREADS)
            # gevent's versions would switch greenlets, or return the address of one.
            self._start = get_original("_thread", "start_new_thread")
            self._ident = get_original("_thread", "get_ident")
            self._sleep = get_original("time", "sleep")

    def run(self, scheme: str, work: Callable[[], T]) -> T:
        """Return what `work` returns. The scheme of the hash is for the log."""
        return self._pool.apply(self._derive, (scheme, work)) if self._is_native else work()

    def watch(self) -> None:
        """Watch from a native thread: the event loop may hang too. Only a worker, which the master replaces,
        may call this, because the watch ends the process.
        """
        if self._is_native:
            self._start(self._watch, ())

    def _derive(self, scheme: str, work: Callable[[], T]) -> T:
        if sys.platform == "linux":  # where threads have priorities
            os.setpriority(os.PRIO_PROCESS, 0, _NICENESS)
        derivation = _Derivation(scheme, self._ident())
        self._running.add(derivation)
        try:
            return work()
        finally:
            self._running.discard(derivation)

    def _watch(self) -> None:
        stuck: _Derivation | None = None
        while stuck is None:
            self._sleep(_TICK)
            for derivation in self._running.copy():
                if derivation.is_stuck(self._limit, self._most_computed):
                    stuck = derivation
        try:
            self._tell(stuck)
        finally:
            self._end_process()

    def _tell(self, stuck: "_Derivation") -> None:
        self.is_stuck = True
        log.error(
            "hashing_stuck",
            reason=f"a password hash of scheme {stuck.scheme} takes longer than {self._limit:.0f} s: "
            "this worker stops, and another replaces it",
            action="report the scheme; if it recurs, remove the hashes of that scheme (docs/monitoring.md)",
        )
        for tell in self.when_stuck:
            tell()

    def _end_process(self) -> NoReturn:
        """End this worker. A native thread cannot be interrupted, and could keep Python from ending."""
        try:
            self._sleep(_NOTICE)
            os.kill(os.getpid(), signal.SIGTERM)  # gunicorn stops accepting, and finishes requests
            self._sleep(_GRACE)
        finally:
            os._exit(1)


class _Derivation:
    """A derivation as the watch sees it."""

    def __init__(self, scheme: str, thread: int) -> None:
        self.scheme = scheme
        self._clock = time.pthread_getcpuclockid(thread) if sys.platform == "linux" else None
        # Ticks are counted, not seconds: a machine that slept has not computed.
        self._ticks = 0
        self._began = self._now()
        self._computed = deque([self._began], maxlen=_TICKS + 1)

    def is_stuck(self, limit: float, most_computed: float) -> bool:
        """To be called at each tick. A thread that overloaded cores starve is not stuck: it goes on computing
        until it has had the CPU time that no derivation takes.
        """
        self._ticks += 1
        self._computed.append(self._now())
        is_idle = self._computed[-1] - self._computed[0] < _LEAST * _TICKS * _TICK
        is_endless = self._computed[-1] - self._began >= most_computed
        return self._ticks * _TICK >= limit and (is_idle or is_endless)

    def _now(self) -> float:
        return 0.0 if self._clock is None else time.clock_gettime(self._clock)
