"""Faults of Postgres, of the disk and of the service's own processes under load: each request is answered soon, no
change is half done, no answered change is lost, and the service recovers by itself. A restart fails no request.
"""

import contextlib
import os
import random
import signal
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

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

CHANCE = random.Random(7)
# The promised seconds for each response and for the recovery, and the slack for a busy machine with two
# cores.
PROMISED = 5
SLACK = 3


@dataclass(frozen=True)
class Fault:
    """A fault: `cause` begins it, and `repair` ends it after some seconds with the result of `cause`. It happens some
    times. If `seconds` is None, responses may take longer than promised.
    """

    cause: Callable[[Deployment, Service], Any]
    repair: Callable[[Deployment, Service, Any], Any]
    times: int
    seconds: int | None
    crashes: bool = False


def serving(service: Service) -> list[int]:
    """Return the two workers as soon as both serve."""

    def both_workers() -> list[int]:
        pids = [pid for pid in children_of(service.process.pid) if serves(pid)]
        return pids if len(pids) == 2 else []

    return wait_until(both_workers, 30)


def _sleep_for_a_moment() -> None:
    """Sleep for a random part of a second, so that the kill hits a random moment."""
    time.sleep(CHANCE.uniform(0, 0.3))


def _kill_a_worker(_deployment: Deployment, service: Service) -> int:
    victim = CHANCE.choice(serving(service))
    _sleep_for_a_moment()
    os.kill(victim, signal.SIGKILL)
    return victim


def _wait_for_its_end(_deployment: Deployment, service: Service, victim: int) -> None:
    wait_until(lambda: victim not in children_of(service.process.pid))


def _kill_the_service(deployment: Deployment, service: Service) -> None:
    _sleep_for_a_moment()
    for pid in processes_of(deployment.state_dir):
        send(pid, signal.SIGKILL)  # the death of the master ends the others
    service.process.wait()


FAULTS = {
    "Postgres killed": Fault(
        lambda deployment, _: deployment.postgres.signal_postmaster(signal.SIGKILL),
        lambda deployment, *_: deployment.postgres.start(),
        times=1,
        seconds=2,
        crashes=True,
    ),
    "Postgres paused": Fault(
        lambda deployment, _: deployment.postgres.freeze(),
        lambda deployment, *_: deployment.postgres.thaw(),
        times=1,
        seconds=5,
    ),
    "a worker killed": Fault(_kill_a_worker, _wait_for_its_end, times=6, seconds=None),
    "the whole service killed": Fault(
        _kill_the_service, lambda _deployment, service, _: service.start_again(), times=2, seconds=None
    ),
}


@pytest.mark.parametrize("fault", FAULTS.values(), ids=FAULTS)
def test_service_recovers_and_loses_no_answered_change(deployment, fault):
    with deployment.service() as service:
        with deployment.load(service) as history:
            history.may_lose_counters = fault.crashes
            for _ in range(fault.times):
                victim = fault.cause(deployment, service)
                time.sleep(fault.seconds or 0)
                fault.repair(deployment, service, victim)
                wait_until(serves_again(history), PROMISED + SLACK if fault.seconds else 30)
        deployment.check(history)
    if fault.seconds:
        assert history.slowest[0] < PROMISED + SLACK, history.slowest


def reload(service: Service) -> None:
    """Replace the workers with new ones, and wait until the old ones are gone."""
    before = set(children_of(service.process.pid))
    service.process.send_signal(signal.SIGHUP)

    def are_new() -> bool:
        workers = {pid for pid in children_of(service.process.pid) if serves(pid)}
        return len(workers) == 2 and before.isdisjoint(children_of(service.process.pid))

    wait_until(are_new, 30)


def restart(service: Service) -> None:
    service.process.send_signal(signal.SIGTERM)
    service.process.wait(20)
    service.start_again()


@pytest.mark.parametrize(("renew", "instances"), [(reload, 1), (restart, 2)])
def test_reload_or_restart_of_one_instance_after_the_other_fails_no_request(deployment, renew, instances):
    with contextlib.ExitStack() as stack:
        services = [stack.enter_context(deployment.service(PATIENT_GUNICORN)) for _ in range(instances)]
        with deployment.load(*services) as history:
            for service in services * (2 // instances):
                renew(service)
                wait_until(serves_again(history))
        deployment.check(history)
    assert history.failed() == 0, history.summary()
