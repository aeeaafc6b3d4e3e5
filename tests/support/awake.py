"""A clock that stands still while this machine does: it counts only the time in which the process of the tests could
run. A slow service stops no other process, so it is as slow by this clock.
"""

import functools
import threading

# Import the functions, because tests replace those of the module.
from time import monotonic, sleep

_TICK = 0.05
# The seconds during which the machine stood still until a moment, and that moment.
_lost = (0.0, monotonic())


def awake() -> float:
    """Return a time in seconds, like `time.monotonic`, without those in which the machine stood still."""
    _start()
    return _awake_at(monotonic())


def _awake_at(now: float) -> float:
    lost, counted_until = _lost
    return now - lost - max(0.0, now - counted_until - 2 * _TICK)


def _keep_counting() -> None:
    global _lost
    while True:
        sleep(_TICK)
        now = monotonic()
        _lost = (now - _awake_at(now), now)


@functools.cache
def _start() -> None:
    global _lost
    _lost = (0.0, monotonic())
    threading.Thread(target=_keep_counting, name="awake", daemon=True).start()
