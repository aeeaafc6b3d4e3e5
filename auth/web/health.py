import mmap
import struct
import threading
import time
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from typing import Any

import psycopg2
from psycopg2.errors import DiskFull, ReadOnlySqlTransaction

from sql import Database, queries

# Seconds. A cached answer keeps a flood of probes from the database.
_INTERVAL = 1.0
_TIMEOUT = 1.0
_REMEMBERED = 60.0
_TIME = struct.Struct("d")
# Failures of requests while the database still answers the check, and what /health says of them.
_TROUBLES: dict[type[psycopg2.Error], str] = {
    DiskFull: "The disk of the database is full; nothing can be written",
    ReadOnlySqlTransaction: "The database is read-only; nothing can be written",
}
# When each was last seen: the application is imported before the fork, so all workers share this memory.
seen = mmap.mmap(-1, _TIME.size * len(_TROUBLES))


def report_trouble(error: psycopg2.Error) -> None:
    """Remember that a request failed, if /health should say so."""
    for number, kind in enumerate(_TROUBLES):
        if isinstance(error, kind):
            _TIME.pack_into(seen, number * _TIME.size, time.monotonic())


def trouble() -> str | None:
    """Return what made requests fail within the last minute."""
    times = _TIME.iter_unpack(seen)
    since = max(time.monotonic() - _REMEMBERED, 0)
    return next((text for text, (at,) in zip(_TROUBLES.values(), times, strict=True) if at > since), None)


class HealthCheck:
    """Whether the database responds. It is queried in a thread, so that a hung one does not delay probes."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._thread = ThreadPoolExecutor(1, "health")
        self._asked_at = float("-inf")
        self._answer: Future[Any] | None = None

    def is_healthy(self, db: Database) -> bool:
        with self._lock:
            now = time.monotonic()
            if self._answer is None or (self._answer.done() and now - self._asked_at >= _INTERVAL):
                self._asked_at = now
                self._answer = self._thread.submit(queries.ping, db)
            answer, timeout = self._answer, self._asked_at + _TIMEOUT - now
        with suppress(TimeoutError, psycopg2.Error):
            return answer.result(max(0.0, timeout)) is not None
        return False
