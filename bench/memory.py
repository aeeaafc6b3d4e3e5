"""Memory of the whole service with its Postgres, as proportional set size."""

from collections.abc import Iterator
from pathlib import Path

from bench import load
from bench.figures import Figure, Pace, against, alone
from bench.people import People
from bench.service import RAISED, BenchService, new_state_dir
from tests.support.processes import children_of

REQUESTS = 100_000


def measure(pace: Pace) -> Iterator[Figure]:
    """Yield the figures."""
    with new_state_dir() as state_dir, BenchService(state_dir, **RAISED) as service:
        idle = proportional_mebibytes(service.process.pid)
        people = People(service, 1000)
        people.insert()
        tokens = people.access_tokens(people.refresh_tokens(256))
        requests = pace.number(REQUESTS, brief=200)
        _send(service, people, tokens, requests // 2)
        half = proportional_mebibytes(service.process.pid)
        _send(service, people, tokens, requests // 2)
        end = proportional_mebibytes(service.process.pid)
    yield alone("memory of the whole service, idle, in MiB", idle, "≤ 145")
    yield alone("memory of the whole service after 100,000 requests, in MiB", end, "≤ 215")
    yield against("memory after 100,000 requests, against 50,000", [end], [half], "≤ 1.05")


def proportional_mebibytes(pid: int) -> float:
    """Return the proportional set size of a process and its descendants."""
    return _kibibytes(pid) / 1024 + sum(map(proportional_mebibytes, children_of(pid)))


def _kibibytes(pid: int) -> int:
    try:
        return next(
            int(line.split()[1])
            for line in Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()
            if line.startswith("Pss:")
        )
    # The process has just ended, or is a zombie.
    except (OSError, StopIteration):
        return 0


def _send(service: BenchService, people: People, tokens: list[str], requests: int) -> None:
    sent = 0
    while sent < requests:
        users = [load.get("/user", token=token) for token in tokens]
        sent += load.run(service.port, users, seconds=min(5, requests / 1000)).requests
        refreshes = people.refreshes(load.CONNECTIONS * 2)
        sent += load.run(service.port, refreshes, seconds=min(5, requests / 1000), renews=True).requests
