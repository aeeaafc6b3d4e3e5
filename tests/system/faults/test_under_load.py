"""Faults of Postgres, of the disk and of the service's own processes under load: each request is answered soon, no
change is half done, no answered change is lost, and the service recovers by itself. A restart fails no request.
"""

import contextlib
import functools
import os
import random
import signal
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import psycopg2
import pytest

from tests.support.processes import (
    PATIENT_GUNICORN,
    Service,
    children_of,
    processes_of,
    send,
    serves,
    wait_until,
)
from tests.system.faults.deployment import Deployment, serves_again
from tests.system.faults.history import History

IN_CI = pytest.mark.selection
CHANCE = random.Random(7)
# The promised seconds for each response and for the recovery, and the slack for a busy machine with two
# cores.
PROMISED = 5
SLACK = 3
QUICK = 1


@dataclass(frozen=True)
class Fault:
    """What begins a fault, what ends it with what the beginning returned, and how often, for how many seconds: in a
    whole run, and in the selection, which 0 times keeps it out of. `None` seconds: the requests may fail meanwhile.
    """

    begin: Callable[[Deployment, Service], Any]
    end: Callable[[Deployment, Service, Any], Any]
    times: tuple[int, int]
    seconds: tuple[int, int] | None
    crashes: bool = False


def _stopped(number: int, times: tuple[int, int]) -> Fault:
    def begin(deployment: Deployment, _service: Service) -> None:
        deployment.postgres.end(number)

    return Fault(
        begin,
        lambda deployment, *_: deployment.postgres.start(),
        times,
        (2, 2),
        crashes=number != signal.SIGINT,
    )


def _lock(deployment: Deployment, _service: Service) -> Any:
    holder = psycopg2.connect(deployment.postgres.url)
    with holder.cursor() as cursor:
        cursor.execute("LOCK TABLE users IN ACCESS EXCLUSIVE MODE")
    return holder


def _close_all(_world: Deployment, _service: Service, taken: list[Any]) -> None:
    for connection in taken:
        connection.close()


def serving(service: Service) -> list[int]:
    """Return the two workers as soon as both serve."""

    def both() -> list[int]:
        pids = [pid for pid in children_of(service.process.pid) if serves(pid)]
        return pids if len(pids) == 2 else []

    return wait_until(both, 30)


def _sleep_for_a_moment() -> None:
    """Sleep for a random part of a second, so that the kill hits a random moment."""
    time.sleep(CHANCE.uniform(0, 0.3))


def _kill_a_worker(_world: Deployment, service: Service) -> int:
    victim = CHANCE.choice(serving(service))
    _sleep_for_a_moment()
    os.kill(victim, signal.SIGKILL)
    return victim


def _wait_for_its_end(_world: Deployment, service: Service, victim: int) -> None:
    wait_until(lambda: victim not in children_of(service.process.pid))


def _kill_the_service(deployment: Deployment, service: Service) -> None:
    _sleep_for_a_moment()
    for pid in processes_of(deployment.state_dir):
        send(pid, signal.SIGKILL)  # the death of the master ends the others
    service.process.wait()


FAULTS = {
    "Postgres stopped, fast": _stopped(signal.SIGINT, (10, 0)),
    "Postgres stopped, immediate": _stopped(signal.SIGQUIT, (10, 0)),
    "Postgres stopped, killed": _stopped(signal.SIGKILL, (10, 1)),
    "Postgres paused": Fault(
        lambda deployment, _: deployment.postgres.freeze(),
        lambda deployment, *_: deployment.postgres.thaw(),
        (1, 1),
        (30, 5),
    ),
    "a table locked": Fault(_lock, lambda _world, _service, holder: holder.close(), (1, 1), (10, 3)),
    "all connections taken": Fault(
        lambda deployment, _: deployment.postgres.take_all(), _close_all, (10, 1), (3, 3)
    ),
    "a worker killed -9": Fault(_kill_a_worker, _wait_for_its_end, (200, 6), None),
    "the whole service killed -9": Fault(
        _kill_the_service, lambda _world, service, _: service.start_again(), (20, 2), None
    ),
}


@pytest.mark.parametrize(
    ("name", "fault"),
    [pytest.param(*each, marks=IN_CI if each[1].times[1] else (), id=each[0]) for each in FAULTS.items()],
)
def test_service_recovers_and_loses_no_answered_change(deployment, note, scale, name, fault):
    times, recoveries = scale(*fault.times), []
    with deployment.service() as service:
        with deployment.load(service) as history:
            history.may_lose_counters = fault.crashes
            watch = Watch(history)
            for _ in range(times):
                begun = fault.begin(deployment, service)
                try:
                    if fault.seconds:
                        watch.look(scale(*fault.seconds))
                finally:
                    fault.end(deployment, service, begun)
                recoveries.append(watch.until_served())
        deployment.check(history)
    note(name, times, f"back after {max(recoveries):.1f} s at most; {watch.slowest}; {history.summary()}")
    if fault.seconds:
        assert history.slowest[0] < PROMISED + SLACK, history.slowest
        assert max(watch.slowest.values()) < QUICK + SLACK
        assert max(recoveries) < PROMISED + SLACK


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


def serves_or_starts(deployment: Deployment, serves: Callable[[], bool]) -> bool:
    """Return whether requests are served; start a Postgres that has ended, as an operator does."""
    # A Postgres that has no room may end only once it has room again.
    if deployment.postgres.has_ended():
        deployment.postgres.stop()
        deployment.postgres.start()
    return serves()


@IN_CI
@pytest.mark.root
def test_service_recovers_from_a_full_disk(small_disk, note, scale):
    times, ballast = scale(5, 1), small_disk / "ballast"
    with (
        Deployment(small_disk, max_wal_size="48MB", min_wal_size="32MB") as deployment,
        deployment.service() as service,
    ):
        with deployment.load(service) as history:
            history.may_lose_counters = True  # without room for its log Postgres crashes
            for _ in range(times):
                refused = history.statuses[503]
                with ballast.open("wb", buffering=0) as file, contextlib.suppress(OSError):
                    while True:
                        file.write(b"0" * 4096)
                wait_until(lambda before=refused: history.statuses[503] > before + 20, 60)  # type: ignore[misc]
                ballast.unlink()
                wait_until(functools.partial(serves_or_starts, deployment, serves_again(history)), 60)
        deployment.check(history)
    note("the disk of Postgres full", times, history.summary())


def reload(service: Service) -> None:
    """Replace the workers with new ones, and wait until the old ones are gone."""
    before = set(children_of(service.process.pid))
    service.process.send_signal(signal.SIGHUP)

    def are_new() -> bool:
        workers = {pid for pid in children_of(service.process.pid) if serves(pid)}
        return len(workers) == 2 and before.isdisjoint(children_of(service.process.pid))

    wait_until(are_new, 30)


def reload_twice(service: Service) -> None:
    """Reload during a reload."""
    before = set(children_of(service.process.pid))
    service.process.send_signal(signal.SIGHUP)
    wait_until(lambda: set(children_of(service.process.pid)) - before)
    reload(service)


def restart(service: Service) -> None:
    service.process.send_signal(signal.SIGTERM)
    service.process.wait(20)
    service.start_again()


@pytest.mark.parametrize(
    ("renew", "instances"),
    [pytest.param(reload, 1, marks=IN_CI), (reload_twice, 1), pytest.param(restart, 2, marks=IN_CI)],
)
def test_restart_by_generations_or_instances_fails_no_request(deployment, note, scale, renew, instances):
    times = scale(10, 2)
    with contextlib.ExitStack() as stack:
        services = [stack.enter_context(deployment.service(PATIENT_GUNICORN)) for _ in range(instances)]
        with deployment.load(*services) as history:
            for number in range(times):
                renew(services[number % instances])
                wait_until(serves_again(history))
        deployment.check(history)
    note(f"{renew.__name__} of {instances}", times, history.summary())
    assert history.failed() == 0, history.summary()
