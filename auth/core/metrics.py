"""Each process counts in a file. One process adds the files up and serves the sums to Prometheus.

Imported only if AUTH_METRICS_BIND is set. The master gives each process a slot, which names its file. The
next process in a slot continues its counts: totals never fall, and restarts do not add files.
"""

import os
from collections.abc import Callable, Iterable
from pathlib import Path

import structlog
from prometheus_client import Counter, Metric, values
from prometheus_client.multiprocess import MultiProcessCollector
from prometheus_client.values import MultiProcessValue, MutexValue

from auth.core.log_writer import writer
from auth.core.settings.state import METRICS_DIRECTORY, METRICS_SLOT

log = structlog.get_logger()

# Bytes of each kind of file: enough for all labels.
_SIZES = {"counter": 2 << 20, "histogram": 4 << 20, "gauge_livesum": 1 << 16, "gauge_livemax": 1 << 16}


def count_in_files(*kinds: str) -> None:
    """Count in the files of this process's slot. Metrics created before this call are not in files.

    `kinds` are those of `_SIZES` that the process counts.
    """
    slot = os.environ.get(METRICS_SLOT, "delivery")  # `latchkey deliver` has no master
    files = [(Path(os.environ[METRICS_DIRECTORY]) / f"{kind}_{slot}.db", _SIZES[kind]) for kind in kinds]
    try:
        for path, size in files:
            _allocate(path, size)
    except OSError as error:
        log.warning("metrics_not_counted", reason=error.strerror)
        values.ValueClass = MutexValue
        return
    values.ValueClass = MultiProcessValue(lambda: slot)


def _allocate(path: Path, size: int) -> None:
    """Fill a file with zeros. The library would leave it sparse: a full disk would then kill the process
    that counts under a new label, with SIGBUS.
    """
    if path.exists():
        return
    try:
        path.write_bytes(bytes(size))
    except OSError:
        path.unlink(missing_ok=True)
        raise


class Total:
    """A counter of what this process counts elsewhere, as a plain number."""

    def __init__(self, name: str, text: str, read: Callable[[], int]) -> None:
        self._counter, self._read, self._counted = Counter(name, text), read, 0

    def count(self) -> None:
        total = self._read()
        self._counter.inc(total - self._counted)
        self._counted = total


def lost_lines() -> Total:
    text = "Lines of the log that were lost: it was not read."
    return Total("latchkey_log_lines_lost", text, lambda: writer.lost)


class Files(MultiProcessCollector):
    """Collects the sums of all files."""

    def __init__(self) -> None:
        super().__init__(None, os.environ[METRICS_DIRECTORY])

    def collect(self) -> Iterable[Metric]:
        files = Path(os.environ[METRICS_DIRECTORY]).glob("*.db")
        return self.merge([str(path) for path in files if _has_content(path)])


def _has_content(path: Path) -> bool:
    """Whether the library can read a file. A new file is empty for an instant."""
    try:
        return path.stat().st_size > 0
    except FileNotFoundError:  # discarded meanwhile
        return False
