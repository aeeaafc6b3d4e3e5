"""Files in which each process counts, for one process that adds them up and serves them to Prometheus.

Imported only if AUTH_METRICS_BIND is set. Files are named after a slot. A later process takes over the slot
of one that has ended, and continues its counts: totals never fall, and restarts do not add files.
"""

import fcntl
import itertools
import os
import sys
import threading
from collections.abc import Iterable
from pathlib import Path
from typing import IO

from prometheus_client import Metric, values
from prometheus_client.multiprocess import MultiProcessCollector, mark_process_dead
from prometheus_client.values import MultiProcessValue

from auth.settings.state import METRICS_DIRECTORY

# Stays open: its lock tells others whether this process lives.
_locks: list[IO[bytes]] = []


def join() -> None:
    """Take a free slot for the metrics of this process."""
    directory = Path(os.environ[METRICS_DIRECTORY])
    for number in itertools.count():
        lock = (directory / f"{number}.lock").open("wb")
        if _take(lock):
            _locks.append(lock)
            mark_process_dead(number, str(directory))  # the one that had the slot before
            break
        lock.close()
    # Greenlets do not switch while they count; gevent's lock would double the time that counting takes.
    monkey = sys.modules.get("gevent.monkey")
    if monkey:
        values.Lock = monkey.get_original("threading", "Lock")
    values.ValueClass = MultiProcessValue(lambda: number)


class Files(MultiProcessCollector):
    """Collects the sums of all files."""

    def __init__(self) -> None:
        self._directory = Path(os.environ[METRICS_DIRECTORY])
        self._lock = threading.Lock()
        super().__init__(None, str(self._directory))

    def collect(self) -> Iterable[Metric]:
        with self._lock:
            self._remove_gauges_of_the_dead()
            # A file is empty for an instant after its creation, which the library takes for an error.
            return self.merge([str(path) for path in self._directory.glob("*.db") if path.stat().st_size])

    def _remove_gauges_of_the_dead(self) -> None:
        """Remove the gauges of processes that have ended, such as the lengths of their queues."""
        for slot in {path.stem.rpartition("_")[2] for path in self._directory.glob("gauge_*.db")}:
            with (self._directory / f"{slot}.lock").open("wb") as lock:
                if _take(lock):
                    mark_process_dead(slot, str(self._directory))


def _take(lock: IO[bytes]) -> bool:
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True
