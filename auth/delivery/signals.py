"""What the delivery threads tell each other: that there is work, which targets are slow, and what the log knows already."""

import threading
import time

import structlog

# Seconds that a target is remembered for as slow.
_MEMORY = 300.0
_MOST_TARGETS = 1000
# Trouble that returns within this time is the same: a target that fails now and then must not fill the log.
_SETTLED = 10.0

log = structlog.get_logger()


class Signal:
    """Wakes one of the threads that wait for it; one that is given while none waits is kept."""

    def __init__(self) -> None:
        self._condition = threading.Condition()
        self._is_given = False
        self._is_over = False

    def give(self) -> None:
        """Wake one thread."""
        with self._condition:
            self._is_given = True
            self._condition.notify()

    def end(self) -> None:
        """Wake all threads, now and from now on."""
        with self._condition:
            self._is_over = True
            self._condition.notify_all()

    def wait(self, seconds: float) -> None:
        """Wait for the signal, at most so long."""
        with self._condition:
            self._condition.wait_for(lambda: self._is_given or self._is_over, seconds)
            self._is_given = False


class SlowTargets:
    """The targets of one channel that kept a thread waiting for so many seconds, lately."""

    def __init__(self, slow_after: float) -> None:
        self._slow_after = slow_after
        self._lock = threading.Lock()
        self._until: dict[str, float] = {}

    def note(self, target: str, seconds: float) -> None:
        """Remember how long a target took."""
        with self._lock:
            self._until.pop(target, None)
            if seconds >= self._slow_after:
                self._until[target] = time.monotonic() + _MEMORY
                if len(self._until) > _MOST_TARGETS:
                    del self._until[next(iter(self._until))]

    def names(self) -> list[str]:
        """Return those that are slow now."""
        now = time.monotonic()
        with self._lock:
            self._until = {target: until for target, until in self._until.items() if until > now}
            return list(self._until)


class Trouble:
    """Whether something works, told to the log when that changes and not at each try."""

    def __init__(self, what: str) -> None:
        self._what = what
        self._lock = threading.Lock()
        self._is_on = False
        self._is_over = False
        self._seen_at = 0.0

    def begin(self, reason: str, exc_info: BaseException | None = None) -> None:
        """Say that it doesn't work."""
        with self._lock:
            is_new = not self._is_on
            self._is_on, self._is_over, self._seen_at = True, False, time.monotonic()
        if is_new:
            log.warning("delivery_fails", what=self._what, reason=reason, exc_info=exc_info)

    def end(self) -> None:
        """Say that it works."""
        with self._lock:
            self._is_over = True
        self.settle()

    def settle(self) -> None:
        """Tell the log that it works again, once it has done so for a while."""
        with self._lock:
            is_news = self._is_on and self._is_over and time.monotonic() - self._seen_at >= _SETTLED
            if is_news:
                self._is_on = False
        if is_news:
            log.warning("delivery_works_again", what=self._what)
