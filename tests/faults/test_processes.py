"""The service's own processes are killed at any moment: answered changes are there, and no change is half
done.
"""

import functools
import os
import random
import signal
import time

import pytest

from tests.faults.world import serves_again
from tests.support.processes import Service, children_of, processes_of, send, serves, wait_until

pytestmark = pytest.mark.selection
CHANCE = random.Random(7)


def sleep_for_a_moment() -> None:
    """Sleep for a random part of a second, so that the kill hits a random moment."""
    time.sleep(CHANCE.uniform(0, 0.3))


def serving(service: Service) -> list[int]:
    """Return the two workers as soon as both serve."""

    def both() -> list[int]:
        pids = [pid for pid in children_of(service.process.pid) if serves(pid)]
        return pids if len(pids) == 2 else []

    return wait_until(both, 30)


def has_been_reaped(service: Service, pid: int) -> bool:
    return pid not in children_of(service.process.pid)


def test_killed_worker_loses_no_answered_change(world, note, scale):
    times = scale(200, 8)
    with world.service() as service:
        with world.load(service) as history:
            for _ in range(times):
                victim = CHANCE.choice(serving(service))
                sleep_for_a_moment()
                os.kill(victim, signal.SIGKILL)
                wait_until(functools.partial(has_been_reaped, service, victim))
            wait_until(serves_again(history))
        world.check(history)
    note("a worker killed -9", times, history.summary())


def test_killed_service_loses_no_answered_change(world, note, scale):
    times = scale(20, 2)
    with world.service() as service:
        with world.load(service) as history:
            for _ in range(times):
                sleep_for_a_moment()
                for pid in processes_of(world.state_dir):
                    send(pid, signal.SIGKILL)  # the death of the master ends the others
                service.process.wait()
                service.start_again()
                wait_until(serves_again(history))
        world.check(history)
    note("the whole service killed -9", times, history.summary())
