"""Log lines that a flood would have written again and again."""

import math
import threading
import time

import structlog

_all: list["Tally"] = []


class Tally:
    """What a flood would have logged again and again: it is logged once a second at most, with how many times it has happened since the last line.

    For the life of the process: what has not been told when a flood ends is told by `tell_all`.
    """

    def __init__(self, event: str) -> None:
        self._event = event
        self._times = 0
        self._logged_at = -math.inf
        self._lock = threading.Lock()
        _all.append(self)

    def count(self) -> None:
        """Take note that it has happened."""
        with self._lock:
            self._times += 1
        self.tell()

    def tell(self) -> None:
        """Log what has not been told, unless there was a line within the last second."""
        now = time.monotonic()
        with self._lock:
            if not self._times or now - self._logged_at < 1:
                return
            times, self._times, self._logged_at = self._times, 0, now
        structlog.get_logger().warning(self._event, times=times)


def tell_all() -> None:
    """Log what no tally has told yet; to be called every second or so."""
    for tally in _all:
        tally.tell()
