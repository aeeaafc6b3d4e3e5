"""Files in which each process counts, for one process that adds them up and serves them to Prometheus.

Imported only if AUTH_METRICS_BIND is set. Files are named after a slot. A later process takes over the slot
of one that has ended, and continues its counts: totals never fall, and restarts do not add files.
"""

import fcntl
import itertools
import os
import sys
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
        super().__init__(None, os.environ[METRICS_DIRECTORY])

    def collect(self) -> Iterable[Metric]:
        for path in Path(self._path).glob("*.lock"):
            with path.open("wb") as lock:
                if _take(lock):
                    mark_process_dead(path.stem, self._path)  # its gauges, such as the length of its queue
        return super().collect()


def _take(lock: IO[bytes]) -> bool:
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True
