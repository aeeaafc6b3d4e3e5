"""Log lines for events that a flood repeats."""

import math
import threading
import time

import structlog


class ThrottledLog:
    """Logs an event at most once a second, with how many times it has happened since the last line."""

    def __init__(self, event: str) -> None:
        self._event = event
        self._times = 0
        self._logged_at = -math.inf
        self._lock = threading.Lock()

    def count(self) -> None:
        """Count the event, and log it unless there was a line within the last second."""
        now = time.monotonic()
        with self._lock:
            self._times += 1
            if now - self._logged_at < 1:
                return
            times, self._times, self._logged_at = self._times, 0, now
        structlog.get_logger().warning(self._event, times=times)
