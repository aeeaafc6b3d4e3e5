"""Postgres is stopped, killed, frozen, locked or out of connections: requests get 503 soon, no change is half
done, and the service recovers by itself.
"""

import contextlib
import signal
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import psycopg2
import pytest

from tests.faults.history import History
from tests.faults.world import World, serves_again
from tests.support.processes import wait_until

IN_CI = pytest.mark.selection
# The promised seconds for each response and for the recovery, and the slack for a busy machine with two
# cores.
PROMISED = 5
SLACK = 3
QUICK = 1


class Watch:
    """Requests in addition to the load while a fault lasts."""

    def __init__(self, history: History) -> None:
        self._history = history
        self.slowest: dict[str, float] = {}

    def look(self, seconds: float) -> None:
        """Request a page that needs no database, and the health, for some seconds."""
        until = time.monotonic() + seconds
        while time.monotonic() < until:
            for path in ("/openapi.yaml", "/health"):
                began = time.monotonic()
                answer = self._history.ask("GET", path)
                assert answer is not None
                assert path == "/health" or answer.status_code == 200
                self.slowest[path] = max(self.slowest.get(path, 0), time.monotonic() - began)

    def until_served(self) -> float:
        """Return the seconds until the service works again."""
        began = time.monotonic()
        wait_until(serves_again(self._history), 30)
        return time.monotonic() - began

    def __str__(self) -> str:
        return ", ".join(f"{path} within {seconds:.1f} s" for path, seconds in self.slowest.items())


@contextmanager
def under_load(world: World, crashes: bool) -> Iterator[tuple[History, Watch]]:
    """Serve under load inside the context; afterwards check everything."""
    with world.service() as service:
        with world.load(service) as history:
            history.may_lose_counters = crashes
            yield history, Watch(history)
        world.check(history)


def endure(
    world: World,
    times: int,
    begin: Callable[[], Any],
    end: Callable[[], Any],
    seconds: float,
    crashes: bool = False,
) -> str:
    """Cause a fault `times` times for some seconds each, and return the observations."""
    recoveries = []
    with under_load(world, crashes) as (history, watch):
        for _ in range(times):
            begin()
            try:
                watch.look(seconds)
            finally:
                end()
            recoveries.append(watch.until_served())
    assert history.slowest[0] < PROMISED + SLACK, history.slowest
    assert watch.slowest["/openapi.yaml"] < QUICK + SLACK
    assert watch.slowest["/health"] < QUICK + SLACK
    assert max(recoveries) < PROMISED + SLACK
    return f"back after {max(recoveries):.1f} s at most; {watch}; {history.summary()}"


@pytest.mark.parametrize(
    "how", [pytest.param("fast", marks=IN_CI), "immediate", pytest.param("killed", marks=IN_CI)]
)
def test_service_recovers_from_a_stopped_postgres(world, note, scale, how):
    number = {"fast": signal.SIGINT, "immediate": signal.SIGQUIT, "killed": signal.SIGKILL}[how]
    times = scale(10, 1)
    seen = endure(
        world, times, lambda: world.postgres.end(number), world.postgres.start, 2, crashes=how != "fast"
    )
    note(f"Postgres stopped, {how}", times, seen)


@IN_CI
def test_service_recovers_from_a_paused_postgres(world, note, scale):
    seconds = scale(30, 5)
    note(
        f"Postgres paused for {seconds} s",
        1,
        endure(world, 1, world.postgres.freeze, world.postgres.thaw, seconds),
    )


@IN_CI
def test_service_recovers_from_a_locked_table(world, note, scale):
    seconds = scale(10, 3)
    holder = psycopg2.connect(world.postgres.url)

    def lock() -> None:
        with holder.cursor() as cursor:
            cursor.execute("LOCK TABLE users IN ACCESS EXCLUSIVE MODE")

    with contextlib.closing(holder):
        note(f"a table locked for {seconds} s", 1, endure(world, 1, lock, holder.rollback, seconds))


@IN_CI
def test_service_recovers_from_exhausted_connections(world, note, scale):
    times = scale(10, 1)
    taken: list[Any] = []

    def take() -> None:
        taken.extend(world.postgres.take_all())

    def give_back() -> None:
        while taken:
            taken.pop().close()

    note("all connections taken", times, endure(world, times, take, give_back, 3))
