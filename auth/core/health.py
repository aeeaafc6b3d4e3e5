"""The state of the database for GET /health and `latchkey_degraded`, examined at most once a second."""

import mmap
import threading
import time
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress

import psycopg2
from psycopg2 import errorcodes
from psycopg2.errors import DiskFull, ReadOnlySqlTransaction

from sql import Database, queries

# Seconds. The cache protects the database from a flood of probes.
_INTERVAL = 1.0
_TIMEOUT = 1.0
_READ_ONLY = "The database is read-only; nothing can be written"
_LOCKED = "Statements on users or sessions wait for a lock; latchkey doctor names the session that holds it"
_FULL = "The disk of the database is full; nothing can be written"
# The class of errors of a server that shuts down, or that an operator told to end the statement.
_INTERVENTION = "57"
# Whether a request found the disk of the database full, and no check has found space since. All workers share
# this memory, because the module is imported before the fork.
_disk_was_full = mmap.mmap(-1, 1)


def report_trouble(error: psycopg2.Error) -> None:
    """Note that a request failed, if a check of the database cannot find the reason."""
    if isinstance(error, DiskFull):
        _disk_was_full[0] = 1


class HealthCheck:
    """Checks the database in a thread, so that a hung one does not delay probes."""

    def __init__(self, db: Database) -> None:
        # It has its own connection: requests that wait for a lock must not delay it.
        self.db = db
        self._lock = threading.Lock()
        self._thread = ThreadPoolExecutor(1, "health")
        self._asked_at = float("-inf")
        self._answer: Future[str | None] | None = None

    def look(self) -> tuple[bool, str | None]:
        """Return whether the database responds, and why requests fail although it does."""
        with self._lock:
            now = time.monotonic()
            if self._answer is None or (self._answer.done() and now - self._asked_at >= _INTERVAL):
                self._asked_at = now
                self._answer = self._thread.submit(_trouble, self.db)
            answer, timeout = self._answer, self._asked_at + _TIMEOUT - now
        with suppress(TimeoutError, psycopg2.Error):
            return True, answer.result(max(0.0, timeout))
        return False, None


def _trouble(db: Database) -> str | None:
    try:
        state = queries.select_database_health(db.asynchronous)
    except ReadOnlySqlTransaction:
        return _READ_ONLY
    except DiskFull:
        return _FULL
    except psycopg2.Error as error:
        if error.pgcode is None or error.pgcode.startswith(_INTERVENTION):
            raise
        return f"The database refuses writes ({_name_of(error.pgcode)}); latchkey doctor says why"
    if state.has_waits and queries.count_lock_waits(db).total:
        return _LOCKED
    if _disk_was_full[0]:
        try:
            queries.write_to_disk(db)
        except DiskFull:
            return _FULL
        _disk_was_full[0] = 0
    return None


def _name_of(code: str) -> str:
    """Return a code with its name in the documentation. The message may quote names or values."""
    try:
        return f"{code}, {errorcodes.lookup(code).lower()}"
    except KeyError:
        return code
