"""The memory of an idle service."""

import time

from bench.memory import proportional_mebibytes
from tests.support.processes import Service, wait_until

# In mebibytes. structlog loads some packages of the tests, too; `make bench` measures without them.
DELIVERY_LIMIT, SERVICE_LIMIT = 45, 185


def test_idle_service_and_its_delivery_process_stay_within_their_limits(new_state_dir):
    with Service(new_state_dir) as service:
        for _ in range(100):
            service.get("/settings")
        # The delivery process has polled the outbox and cleaned up by then.
        time.sleep(5)
        (delivery,) = map(proportional_mebibytes, wait_until(service.delivery_processes))
        size = proportional_mebibytes(service.process.pid)
    assert delivery <= DELIVERY_LIMIT
    assert size <= SERVICE_LIMIT
