"""Mixed load for half an hour: memory, threads, descriptors and connections stay constant."""

import os
import statistics
import time
from collections import defaultdict
from pathlib import Path
from typing import Any

from tests.support.processes import PATIENT_GUNICORN, Service, children_of, wait_until

MIB = 2**20
# The memory that a worker may gain: bounded caches fill up to it, a leak exceeds it.
MORE_MEMORY = 24 * MIB


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
    # Nine of each worker, four of the delivery process, and one that listens.
    assert max(samples["connections"]) <= 2 * 9 + 4 + 1, seen
    assert last["descriptors"] <= first["descriptors"] + 12, seen
