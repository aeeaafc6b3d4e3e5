"""Time of the first start and of the next one."""

import time
from collections.abc import Iterator

from bench.figures import Figure, Pace, alone
from bench.service import BenchService, new_state_dir


def measure(_pace: Pace) -> Iterator[Figure]:
    """Yield the figures."""
    with new_state_dir() as state_dir:
        yield alone("first start ever, with a new database, in s", _start(BenchService(state_dir)))
        yield alone("start again, in s", _start(BenchService(state_dir)))


def _start(service: BenchService) -> float:
    began = time.monotonic()
    with service:
        return time.monotonic() - began
