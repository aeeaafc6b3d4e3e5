"""Postgres is stopped, killed, frozen, full, locked or has no connection left: 503 soon, nothing by half, and
back to work by itself.
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
# Seconds in which every request is answered and the service is back, as promised; and what clients, service
# and Postgres together may take from each other on two busy cores.
PROMISED = 5
SLACK = 3
QUICK = 1


class Watch:
    """What is asked beside the load while a fault lasts."""

    def __init__(self, history: History) -> None:
        self._history = history
        self.slowest: dict[str, float] = {}

    def look(self, seconds: float) -> None:
        """Ask for what needs no database, and whether it is there, for so long."""
        until = time.monotonic() + seconds
        while time.monotonic() < until:
            for path in ("/openapi.yaml", "/health"):
                began = time.monotonic()
                answer = self._history.ask("GET", path)
                assert answer is not None
                assert path == "/health" or answer.status_code == 200
                self.slowest[path] = max(self.slowest.get(path, 0), time.monotonic() - began)

    def until_served(self) -> float:
        """Return the seconds until the service works for its clients again."""
        began = time.monotonic()
        wait_until(serves_again(self._history), 30)
        return time.monotonic() - began

    def __str__(self) -> str:
        return ", ".join(f"{path} within {seconds:.1f} s" for path, seconds in self.slowest.items())


@contextmanager
def under_load(world: World, crashes: bool) -> Iterator[tuple[History, Watch]]:
    """Serve, and have clients ask; afterwards everything is checked."""
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
    """Have a fault so often, for so long, and return what was seen."""
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
def test_it_is_stopped(world, note, scale, how):
    number = {"fast": signal.SIGINT, "immediate": signal.SIGQUIT, "killed": signal.SIGKILL}[how]
    times = scale(10, 1)
    seen = endure(
        world, times, lambda: world.postgres.end(number), world.postgres.start, 2, crashes=how != "fast"
    )
    note(f"Postgres stopped, {how}", times, seen)


@IN_CI
def test_it_is_paused(world, note, scale):
    seconds = scale(30, 5)
    note(
        f"Postgres paused for {seconds} s",
        1,
        endure(world, 1, world.postgres.freeze, world.postgres.thaw, seconds),
    )


@IN_CI
def test_a_table_is_locked(world, note, scale):
    seconds = scale(10, 3)
    holder = psycopg2.connect(world.postgres.url)

    def lock() -> None:
        with holder.cursor() as cursor:
            cursor.execute("LOCK TABLE users IN ACCESS EXCLUSIVE MODE")

    with contextlib.closing(holder):
        note(f"a table locked for {seconds} s", 1, endure(world, 1, lock, holder.rollback, seconds))


@IN_CI
def test_its_connections_are_all_taken(world, note, scale):
    times = scale(10, 1)
    taken: list[Any] = []

    def take() -> None:
        taken.extend(world.postgres.take_all())

    def give_back() -> None:
        while taken:
            taken.pop().close()

    note("all connections taken", times, endure(world, times, take, give_back, 3))
