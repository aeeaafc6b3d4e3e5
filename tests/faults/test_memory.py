"""The memory of an idle service, including its Postgres."""

import time

import pytest

from bench.memory import proportional_mebibytes
from tests.support.processes import Service, wait_until

pytestmark = pytest.mark.selection

# With the packages of the tests, some of which structlog loads too. `make bench` measures without them.
DELIVERY_LIMIT, SERVICE_LIMIT = 45, 185


def test_idle_service_and_its_delivery_process_stay_within_their_limits(new_state_dir, note):
    with Service(new_state_dir) as service:
        for _ in range(100):
            service.get("/settings")
        # The delivery process has polled the outbox and cleaned up by then.
        time.sleep(5)
        (delivery,) = map(proportional_mebibytes, wait_until(service.delivery_processes))
        size = proportional_mebibytes(service.process.pid)
    note("memory of an idle service", 1, f"delivery process {delivery:.0f} MiB, all {size:.0f} MiB (PSS)")
    assert delivery <= DELIVERY_LIMIT
    assert size <= SERVICE_LIMIT
