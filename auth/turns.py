"""Turns: so many may be at work at once, so many more may wait, and each comes in the order in which it came."""

import threading
from collections import deque


class Turns:
    """A semaphore that hands each turn to who has waited longest.

    Those of Python give it to whoever asks at the right moment, so that somebody who waits may be overtaken again and again.
    """

    def __init__(self, number: int, line: int) -> None:
        self._free = number
        self._line = line
        self._waiting: deque[threading.Lock] = deque()
        self._lock = threading.Lock()

    @property
    def waiting(self) -> int:
        """How many wait."""
        return len(self._waiting)

    def take(self, seconds: float) -> bool:
        """Wait for a turn, so long at most, and not at all where the line is full; return whether it has come. Who has got one must `give_back`."""
        with self._lock:
            if self._free:
                self._free -= 1
                return True
            if len(self._waiting) >= self._line:
                return False
            mine = threading.Lock()
            mine.acquire()
            self._waiting.append(mine)
        if mine.acquire(timeout=seconds):
            return True
        with self._lock:
            # It may have come after the wait was over.
            if mine not in self._waiting:
                return True
            self._waiting.remove(mine)
            return False

    def give_back(self) -> None:
        """End a turn."""
        with self._lock:
            if self._waiting:
                self._waiting.popleft().release()
            else:
                self._free += 1
