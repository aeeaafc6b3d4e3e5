"""Logs that a channel or the database fails and works again: when that changes, not at each attempt."""

import threading
import time

import structlog

# Seconds without a failure until a channel counts as recovered: a flapping target must not fill the log.
_SETTLED_AFTER = 10.0

log = structlog.get_logger()


class FailureLog:
    """The state of one channel, or of the database."""

    def __init__(self, what: str) -> None:
        self._what = what
        self._lock = threading.Lock()
        self._is_failing = False
        self._has_recovered = False
        self._failed_at = 0.0

    def begin(self, reason: str, exc_info: BaseException | None = None) -> None:
        """Log a failure, unless the log has it already."""
        with self._lock:
            is_new = not self._is_failing
            self._is_failing, self._has_recovered, self._failed_at = True, False, time.monotonic()
        if is_new:
            log.warning("delivery_fails", what=self._what, reason=reason, exc_info=exc_info)

    def end(self) -> None:
        """Note a success."""
        with self._lock:
            self._has_recovered = True
        self.settle()

    def settle(self) -> None:
        """Log the recovery once it has lasted."""
        with self._lock:
            is_news = (
                self._is_failing
                and self._has_recovered
                and time.monotonic() - self._failed_at >= _SETTLED_AFTER
            )
            if is_news:
                self._is_failing = False
        if is_news:
            log.warning("delivery_works_again", what=self._what)
