"""Serves the metrics of this node to Prometheus. Imported only if AUTH_METRICS_BIND is set."""

import socket
import sys
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from http.server import ThreadingHTTPServer
from urllib.parse import urlsplit

import psycopg2
import structlog
from prometheus_client import CollectorRegistry, Counter, Metric, MetricsHandler
from prometheus_client.core import GaugeMetricFamily, InfoMetricFamily
from prometheus_client.registry import Collector

import auth
from auth.core import metrics
from auth.core.settings import Settings, state
from sql import Database, queries

PATH = "/metrics"
_TIMEOUT = 10  # seconds for a client to send its request
_REUSED_FOR = 5.0  # seconds, so that several Prometheus servers do not each count the outbox
_MOST_COUNTED = 10_000
_CHANNELS = ("email", "sms", "webhook")  # not `logout`, which waits for other services
_FIRST_WARNING = 10.0  # seconds: the previous process holds the port until it has stopped

log = structlog.get_logger()


def start(settings: Settings, db: Database) -> Callable[[str, str], None]:
    """Serve the metrics of all processes, and return the function that counts deliveries."""
    metrics.count_in_files("counter")
    attempts = Counter(
        "latchkey_deliveries", "Attempts to deliver a message or event.", ["channel", "outcome"]
    )
    registry = CollectorRegistry()
    # Register this before `Files`, which reads the lost lines that it counts.
    registry.register(_Measured(settings, db))
    registry.register(metrics.Files())
    bind = settings.metrics_bind or ""
    threading.Thread(target=_serve, args=(bind, registry), name="metrics", daemon=True).start()
    return lambda channel, outcome: attempts.labels(channel, outcome).inc()


def _serve(bind: str, registry: CollectorRegistry) -> None:
    host, _, port = bind.rpartition(":")
    began_at, has_warned = time.monotonic(), False
    while True:
        try:
            server = _MetricsServer((host.strip("[]"), int(port)), _QuietHandler.factory(registry))
            break
        except OSError as error:
            if time.monotonic() - began_at > _FIRST_WARNING and not has_warned:
                log.warning("metrics_not_served", address=bind, reason=error.strerror)
                has_warned = True
            time.sleep(1)
    server.serve_forever()


class _MetricsServer(ThreadingHTTPServer):
    def __init__(self, address: tuple[str, int], handler: type) -> None:
        self.address_family = socket.AF_INET6 if ":" in address[0] else socket.AF_INET
        super().__init__(address, handler)

    def handle_error(self, request: object, client_address: object) -> None:
        error = sys.exception()
        if not isinstance(error, ConnectionError | TimeoutError):  # ignore a client that disconnected
            log.error("metrics_failed", exc_info=error)


class _QuietHandler(MetricsHandler):
    timeout = _TIMEOUT
    server_version, sys_version = "latchkey", ""

    def do_GET(self) -> None:
        if urlsplit(self.path).path == PATH:
            super().do_GET()
        else:
            self.send_error(404)


class _Measured(Collector):
    """Metrics that are measured when Prometheus asks. Those of the database are the same on all nodes."""

    def __init__(self, settings: Settings, db: Database) -> None:
        self._totals = settings.message_totals
        self._db = db
        self._lock = threading.Lock()
        self._measured: list[Metric] = []
        self._measured_at = -_REUSED_FOR
        self._lost_lines = metrics.lost_lines()

    def collect(self) -> Iterable[Metric]:
        with self._lock:
            if time.monotonic() - self._measured_at >= _REUSED_FOR:
                self._measured = list(self._measure())
                self._measured_at = time.monotonic()
            return self._measured

    def _measure(self) -> Iterator[Metric]:
        self._lost_lines.count()
        yield InfoMetricFamily("latchkey", "The running release.", {"version": auth.__version__})
        workers = state.wanted_workers()
        if workers is not None:
            yield GaugeMetricFamily("latchkey_workers_wanted", "Workers that should run.", workers)
        try:
            from_database = [*self._outbox(), *self._upkeep()]
        except psycopg2.Error:
            from_database = []
        yield GaugeMetricFamily("latchkey_database_up", "Whether the database responds.", bool(from_database))
        yield from from_database

    def _outbox(self) -> Iterator[Metric]:
        rows = {row.channel: row for row in queries.measure_outbox(self._db, most=_MOST_COUNTED)}
        for name, text in (
            ("waiting", f"Messages and events waiting, counted up to {_MOST_COUNTED:,}."),
            ("oldest_seconds", "Age of the oldest one."),
            ("overdue_seconds", "How long one has been overdue for an attempt."),
        ):
            family = GaugeMetricFamily(f"latchkey_outbox_{name}", text, labels=["channel"])
            for channel in _CHANNELS:
                family.add_metric([channel], getattr(rows[channel], name) if channel in rows else 0)
            yield family

    def _upkeep(self) -> Iterator[Metric]:
        totals = GaugeMetricFamily(
            "latchkey_message_total_used",
            "Messages of a window per AUTH_RATE_LIMIT_…_TOTAL.",
            labels=["total"],
        )
        seconds = [limit.get_expiry() for limit in self._totals.values()]
        for total in queries.measure_totals(self._db, names=[*self._totals], seconds=seconds):
            totals.add_metric([total.name], total.count / self._totals[total.name].amount)
        yield totals
        row = queries.measure_upkeep(self._db)
        waits = "Statements on users or sessions that have waited for a lock for a second."
        yield GaugeMetricFamily("latchkey_lock_waits", waits, queries.count_lock_waits(self._db).total)
        yield GaugeMetricFamily("latchkey_webhook_failing", "Webhooks that fail.", row.failing_webhooks)
        for name, text, age in (
            ("backup_age", "Age of the newest backup.", row.backup_age),
            ("backup_verified_age", "Age of the newest rehearsed backup.", row.backup_verified_age),
        ):
            family = GaugeMetricFamily(f"latchkey_{name}_seconds", text)
            if age is not None:
                family.add_metric([], age)
            yield family
