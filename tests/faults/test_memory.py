"""The memory of an idle service, including its Postgres."""

import time
from pathlib import Path

import pytest

from tests.support.processes import Service, children_of, wait_until

pytestmark = pytest.mark.selection

MEBIBYTE = 1024
DELIVERY_LIMIT, SERVICE_LIMIT = 50 * MEBIBYTE, 280 * MEBIBYTE


def pss_of(pid: int) -> int:
    """Return the proportional set size of a process in KiB: pages shared by n processes count as 1/n."""
    try:
        lines = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()
    except OSError:
        return 0  # a worker of Postgres's autovacuum has ended meanwhile
    return int(next(line for line in lines if line.startswith("Pss:")).split()[1])


def descendants_of(pid: int) -> list[int]:
    children = children_of(pid)
    return [*children, *(further for child in children for further in descendants_of(child))]


def test_idle_service_and_its_delivery_process_stay_within_their_limits(new_state_dir, note):
    with Service(new_state_dir) as service:
        for _ in range(100):
            service.get("/settings")
        # The delivery process has polled the outbox and cleaned up by then.
        time.sleep(5)
        (delivery,) = wait_until(service.delivery_processes)
        delivery_size = pss_of(delivery)
        size = sum(map(pss_of, [service.process.pid, *descendants_of(service.process.pid)]))
    note(
        "memory of an idle service",
        1,
        f"delivery process {delivery_size // MEBIBYTE} MiB, all {size // MEBIBYTE} MiB (PSS)",
    )
    assert delivery_size <= DELIVERY_LIMIT
    assert size <= SERVICE_LIMIT
