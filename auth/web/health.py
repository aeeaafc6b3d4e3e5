import threading
import time
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress

import psycopg2

from sql import Database

# Seconds. A cached answer keeps a flood of probes from the database.
_INTERVAL = 1.0
_TIMEOUT = 1.0


class HealthCheck:
    """Whether the database responds. It is queried in a thread, so that a hung one does not delay probes."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._thread = ThreadPoolExecutor(1, "health")
        self._asked_at = float("-inf")
        self._answer: Future[bool] | None = None

    def is_healthy(self, db: Database) -> bool:
        with self._lock:
            answer = self._current_answer(db)
            timeout = self._asked_at + _TIMEOUT - time.monotonic()
        with suppress(TimeoutError):
            return answer.result(max(0.0, timeout))
        return False

    def _current_answer(self, db: Database) -> Future[bool]:
        now = time.monotonic()
        if self._answer is None or (self._answer.done() and now - self._asked_at >= _INTERVAL):
            self._asked_at = now
            self._answer = self._thread.submit(_answers, db)
        return self._answer


def _answers(db: Database) -> bool:
    try:
        return db.one("ping") is not None
    except psycopg2.Error:
        return False
