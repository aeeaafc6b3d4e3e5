"""How many connections each process has, in memory that all of them see, so that none takes all and leaves others without work.

All processes are woken for a new connection, and the quickest takes it. When its core is free and the other's is not, it takes a
hundred in a row; and they stay with it for as long as they are kept alive.
"""

from collections.abc import Collection
from multiprocessing.sharedctypes import RawArray
from typing import Any

_NOBODY = -1
# Each time that gunicorn is told to load its settings again (HUP), new processes start beside those that end.
_GENERATIONS = 4


class Share:
    """What one process has of the connections, among those whose counts are in the same memory; alone, where there is none."""

    def __init__(self, counts: Any = None, place: int = 0) -> None:
        self._counts = RawArray("i", 1) if counts is None else counts
        self.place = place

    def tell(self, count: int) -> None:
        """Say how many connections this process has."""
        self._counts[self.place] = count

    def leave(self) -> None:
        """Say that this process takes no more of them."""
        self._counts[self.place] = _NOBODY

    def is_large(self) -> bool:
        """Whether this process clearly has more connections than another one."""
        counts = [count for count in self._counts if count != _NOBODY]
        # By a lead that grows with the numbers: a crowd is not to wait while they are made even one by one.
        return bool(counts) and self._counts[self.place] > min(counts) * 1.125 + 1


class Shares:
    """The counts of so many processes, and of those that start beside them while they end. Made by their parent, before it forks."""

    def __init__(self, processes: int) -> None:
        self._counts = RawArray("i", [_NOBODY] * processes * _GENERATIONS)

    def take(self, others: Collection[Share]) -> Share:
        """Return the share of a new process beside those of others, who may include some that are about to end."""
        free = [place for place in range(len(self._counts)) if place not in {other.place for other in others}]
        for place in free:
            # Who had it may have been killed.
            self._counts[place] = _NOBODY
        return Share(self._counts, free[0]) if free else Share()
