"""Memory, threads, descriptors and connections: of an idle service, and under mixed load for half an hour."""

import os
import statistics
import time
from collections import defaultdict
from pathlib import Path
from typing import Any

import pytest

from bench.memory import proportional_mebibytes
from sql.pool import SIZE
from tests.support.processes import PATIENT_GUNICORN, Service, children_of, wait_until

MIB = 2**20
# With the packages of the tests, some of which structlog loads too. `make bench` measures without them.
DELIVERY_LIMIT, SERVICE_LIMIT = 45, 185
# The memory that a worker may gain: bounded caches fill up to it, a leak exceeds it.
MORE_MEMORY = 24 * MIB


@pytest.mark.selection
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


def sample(service: Service, deployment: Any) -> dict[str, float]:
    """Return the resources in use: for workers, the maximum over all of them."""
    workers = [Path(f"/proc/{pid}") for pid in children_of(service.process.pid)]
    pages = [int((worker / "statm").read_text().split()[1]) for worker in workers]
    (connections,) = deployment.postgres.run(
        "SELECT count(*) FROM pg_stat_activity WHERE application_name = 'latchkey'"
    )
    return {
        "memory": max(pages) * os.sysconf("SC_PAGESIZE"),
        "threads": max(len(os.listdir(worker / "task")) for worker in workers),
        "descriptors": max(len(os.listdir(worker / "fd")) for worker in workers),
        "connections": connections,
    }


def test_mixed_load_leaks_no_resources(deployment, note):
    warm_up, seconds = 120, 1800
    samples = defaultdict(list)
    with deployment.service(PATIENT_GUNICORN) as service:
        workers = wait_until(
            lambda: pids if len(pids := set(children_of(service.process.pid))) == 3 else set()
        )
        with deployment.load(service) as history:
            begins, ends = time.monotonic() + warm_up, time.monotonic() + warm_up + seconds
            due = begins
            while due < ends:
                wait_until(lambda moment=due: time.monotonic() > moment, 300)  # type: ignore[misc]
                for name, value in sample(service, deployment).items():
                    samples[name].append(value)
                due += seconds / 50
        assert set(children_of(service.process.pid)) == workers
        deployment.check(history)
    first = {name: statistics.median(values[:10]) for name, values in samples.items()}
    last = {name: statistics.median(values[-10:]) for name, values in samples.items()}
    unit = {"memory": MIB}
    seen = ", ".join(
        f"{name} {first[name] / unit.get(name, 1):.0f} to {last[name] / unit.get(name, 1):.0f}"
        for name in first
    )
    seen = seen.replace("memory", "MiB")
    note(f"mixed load for {seconds} s", 1, f"{seen}; {history.summary()}")
    assert history.failed() == 0
    assert last["memory"] < first["memory"] + MORE_MEMORY, seen
    # The two hashing threads and the connections are created on demand.
    assert last["threads"] <= first["threads"] + 2, seen
    # Those of two workers, four of the delivery process, and one that listens.
    assert max(samples["connections"]) <= 2 * SIZE + 4 + 1, seen
    assert last["descriptors"] <= first["descriptors"] + 12, seen
