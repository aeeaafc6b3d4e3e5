"""Social sign-in and webhooks alone, beside every extension, in turn: the time to start, and memory."""

import time
from collections.abc import Iterator

from bench.figures import Figure, Pace, against
from bench.memory import idle_mebibytes
from bench.service import BenchService, new_state_dir
from tests.support.extensions import EVERY_EXTENSION, EXTENSIONS_OFF


def measure(pace: Pace) -> Iterator[Figure]:
    """Yield the figures."""
    starts: dict[str, list[float]] = {"alone": [], "full": []}
    memory: dict[str, list[float]] = {"alone": [], "full": []}
    with new_state_dir() as state_dir:
        for number in range(pace.warm_ups + pace.rounds):
            for name in ("alone", "full") if number % 2 else ("full", "alone"):
                began = time.monotonic()
                with BenchService(
                    state_dir, **EVERY_EXTENSION if name == "full" else EXTENSIONS_OFF
                ) as service:
                    starts[name].append(time.monotonic() - began)
                    memory[name].append(idle_mebibytes(service.process.pid, pace))
    for what, measured in (("start again, in s", starts), ("memory, idle, in MiB", memory)):
        alone, full = (measured[name][pace.warm_ups :] for name in ("alone", "full"))
        yield against(f"social and webhooks alone: {what}, against every extension", alone, full)
