"""The metrics of a worker, for Prometheus. Imported only if AUTH_METRICS_BIND is set."""

import threading
import time

from flask import request
from gevent.monkey import get_original
from prometheus_client import Counter, Gauge, Histogram, values

from auth.core import metrics
from auth.core.metrics import Total
from auth.web import g
from auth.web.context import Latchkey

_SAMPLE_INTERVAL = 1.0  # seconds
_BUCKETS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5)
_METHODS = {"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"}


class RequestMetrics:
    """Counts requests, and samples queues once a second. There is one per worker."""

    def __init__(self, latchkey: Latchkey) -> None:
        # Greenlets do not switch while they count; gevent's lock would double the time that counting takes.
        values.Lock = get_original("threading", "Lock")
        metrics.count_in_files("counter", "histogram", "gauge_livesum", "gauge_livemax")
        self._requests = Counter("latchkey_requests", "Requests answered.", ["method", "route", "status"])
        self._durations = Histogram(
            "latchkey_request_seconds",
            "Seconds from a request's headers to its response's.",
            ["method", "route"],
            buckets=_BUCKETS,
        )
        self._sign_ins = Counter("latchkey_sign_ins", "Attempts to sign in.", ["method", "outcome"])
        self._refreshes = Counter("latchkey_refreshes", "Refreshes of sessions.", ["outcome"])
        threading.Thread(target=_Samples(latchkey).run, name="metrics", daemon=True).start()

    def count(self, method: str, status: int, seconds: float) -> None:
        """Count the current request, once its status is known."""
        # Clients choose the path, and any method.
        rule = request.url_rule
        labels = (method if method in _METHODS else "other", rule.rule if rule else "none")
        self._requests.labels(*labels, str(status)).inc()
        self._durations.labels(*labels).observe(seconds)
        # A GET without a redirect has shown a page that asks for a click.
        way = g.route.sign_in
        if way and not (status == 200 and method in ("GET", "HEAD")):
            outcome = g.refused_because or ("success" if status < 400 else "failure")
            if way == "refresh":
                self._refreshes.labels(outcome).inc()
            else:
                self._sign_ins.labels(way, outcome).inc()


class _Samples:
    """Gauges, and counters kept elsewhere as plain numbers."""

    def __init__(self, latchkey: Latchkey) -> None:
        self._passwords, self._health, self._pool = latchkey.passwords, latchkey.health, latchkey.db.pool
        self._workers = _gauge_of_sum("latchkey_workers", "Workers that are running.")
        self._lag = Gauge(
            "latchkey_worker_lag_seconds",
            "Delay of a timer in the slowest worker: its core is too busy.",
            multiprocess_mode="livemax",
        )
        self._degraded = Gauge(
            "latchkey_degraded",
            "Whether GET /health says degraded because of the database.",
            multiprocess_mode="livemax",
        )
        self._queue = _gauge_of_sum("latchkey_hash_queue_requests", "Requests hashing or waiting to hash.")
        self._stuck = _gauge_of_sum("latchkey_hash_stuck", "Workers whose hashing is stuck.")
        self._connections = _gauge_of_sum("latchkey_pool_connections_in_use", "Connections in use.")
        self._size = _gauge_of_sum("latchkey_pool_connections_max", "Maximum connections.")
        leaked = latchkey.leaked_passwords
        self._totals = (
            Total(
                "latchkey_hash_queue_refusals",
                "Requests refused because the queue is full.",
                lambda: latchkey.passwords.refusals,
            ),
            Total(
                "latchkey_pool_timeouts",
                "Waits for a free connection that timed out.",
                lambda: latchkey.db.pool.timeouts,
            ),
            Total(
                "latchkey_leaked_passwords_unasked",
                "New passwords that were accepted without an answer about leaks.",
                lambda: leaked.failures() if leaked else 0,
            ),
            metrics.lost_lines(),
        )

    def run(self) -> None:
        while True:
            self._workers.set(1)
            self._degraded.set(self._health.look()[1] is not None)
            self._queue.set(self._passwords.queue_length)
            self._stuck.set(self._passwords.threads.is_stuck())
            self._connections.set(self._pool.lent)
            self._size.set(self._pool.size)
            for total in self._totals:
                total.count()
            began_at = time.monotonic()
            time.sleep(_SAMPLE_INTERVAL)
            self._lag.set(max(0.0, time.monotonic() - began_at - _SAMPLE_INTERVAL))


def _gauge_of_sum(name: str, text: str) -> Gauge:
    return Gauge(name, text, multiprocess_mode="livesum")
