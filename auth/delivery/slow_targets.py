"""The targets of a channel that were slow lately."""

import threading
import time

# Seconds that an attempt takes at a slow target.
SLOW_AFTER = 5.0
# Seconds for which a slow target is remembered.
_MEMORY = 300.0
_MAX_TARGETS = 1000


class SlowTargets:
    """A bounded set of targets whose last attempt took `slow_after` seconds or more."""

    def __init__(self, slow_after: float) -> None:
        self._slow_after = slow_after
        self._lock = threading.Lock()
        self._until: dict[str, float] = {}

    def note(self, target: str, seconds: float) -> None:
        """Record how long an attempt took."""
        with self._lock:
            self._until.pop(target, None)
            if seconds >= self._slow_after:
                self._until[target] = time.monotonic() + _MEMORY
                if len(self._until) > _MAX_TARGETS:
                    del self._until[next(iter(self._until))]

    def names(self) -> list[str]:
        """Return the targets that are slow now."""
        now = time.monotonic()
        with self._lock:
            self._until = {target: until for target, until in self._until.items() if until > now}
            return list(self._until)
