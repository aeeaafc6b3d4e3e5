"""A worker's counts for Prometheus, without a worker."""

import pytest
from prometheus_client import CollectorRegistry, Counter, Histogram

from auth.ops.processes.request_metrics import RequestMetrics
from auth.web.application import Application


@pytest.fixture
def metrics() -> RequestMetrics:
    """Only the counters, without files and samples."""
    made, registry = RequestMetrics.__new__(RequestMetrics), CollectorRegistry()
    made._requests = Counter("requests", "Requests.", ["method", "route", "status"], registry=registry)
    made._durations = Histogram("seconds", "Seconds.", ["method", "route"], registry=registry)
    return made


def test_methods_that_clients_invent_do_not_take_memory(metrics):
    app = Application(__name__)
    for number in range(50):
        with app.test_request_context("/"):
            metrics.count(f"INVENTED-{number}", 405, 0.001)
    assert len(metrics._requests._metrics) == 1
    assert metrics._requests.labels("other", "none", "405")._value.get() == 50
