"""Totals of long lists: exact up to `EXACT`. Each worker counts a larger one at most every ten seconds."""

import functools
import time
from collections.abc import Callable, Hashable

EXACT = 1_000
_AGE = 10


def total_of(counted: int, count: Callable[..., int], *arguments: Hashable) -> int:
    """Return the total of a list.

    A statement that has counted `EXACT` may have stopped there: `count` then counts all, from the arguments.
    """
    if counted != EXACT:
        return counted
    return _large_total(int(time.monotonic() / _AGE), count, *arguments)


@functools.lru_cache(maxsize=64)
def _large_total(_period: int, count: Callable[..., int], *arguments: Hashable) -> int:
    return count(*arguments)
