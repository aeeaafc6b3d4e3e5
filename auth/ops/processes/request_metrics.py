"""The metrics of a worker, for Prometheus. Imported only if AUTH_METRICS_BIND is set."""

import threading
import time

from flask import request
from gevent.monkey import get_original
from prometheus_client import Counter, Gauge, Histogram, values

from auth.core import metrics
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
        metrics.join()
        self._requests = Counter("latchkey_requests", "Requests answered.", ["method", "route", "status"])
        self._durations = Histogram(
            "latchkey_request_seconds",
            "Seconds from a request's headers to its response's.",
            ["method", "route"],
            buckets=_BUCKETS,
        )
        self._sign_ins = Counter("latchkey_sign_ins", "Attempts to sign in.", ["method", "outcome"])
        self._refreshes = Counter("latchkey_refreshes", "Refreshes of sessions.", ["outcome"])
        threading.Thread(target=_sample, args=(latchkey,), name="metrics", daemon=True).start()

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


def _sample(latchkey: Latchkey) -> None:
    """Set the gauges, and the counters that are kept elsewhere as plain numbers, again and again."""
    passwords, pool, leaked_passwords = latchkey.passwords, latchkey.db.pool, latchkey.leaked_passwords
    workers = _sum("latchkey_workers", "Workers that are running.")
    lag = Gauge(
        "latchkey_worker_lag_seconds",
        "Delay of a timer in the slowest worker: its core is too busy.",
        multiprocess_mode="livemax",
    )
    degraded = Gauge(
        "latchkey_degraded",
        "Whether GET /health says degraded because of the database.",
        multiprocess_mode="livemax",
    )
    queue = _sum("latchkey_hash_queue_requests", "Requests hashing or waiting to hash.")
    stuck = _sum("latchkey_hash_stuck", "Workers whose hashing is stuck.")
    refused = Counter("latchkey_hash_queue_refusals", "Requests refused because the queue is full.")
    connections = _sum("latchkey_pool_connections_in_use", "Connections in use.")
    size = _sum("latchkey_pool_connections_max", "Maximum connections.")
    timeouts = Counter("latchkey_pool_timeouts", "Waits for a free connection that timed out.")
    unasked = Counter(
        "latchkey_leaked_passwords_unasked", "New passwords that were accepted without an answer about leaks."
    )
    counted = {refused: 0, timeouts: 0, unasked: 0}
    while True:
        workers.set(1)
        degraded.set(latchkey.health.look()[1] is not None)
        queue.set(passwords.queue_length)
        stuck.set(passwords.threads.is_stuck())
        connections.set(pool.lent)
        size.set(pool.size)
        for counter, total in (
            (refused, passwords.refusals),
            (timeouts, pool.timeouts),
            (unasked, leaked_passwords.failures() if leaked_passwords else 0),
        ):
            counter.inc(total - counted[counter])
            counted[counter] = total
        begin = time.monotonic()
        time.sleep(_SAMPLE_INTERVAL)
        lag.set(max(0.0, time.monotonic() - begin - _SAMPLE_INTERVAL))


def _sum(name: str, text: str) -> Gauge:
    return Gauge(name, text, multiprocess_mode="livesum")
