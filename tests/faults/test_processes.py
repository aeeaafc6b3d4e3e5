"""The service's own processes are killed, at any moment: what was answered is there, and nothing by half."""

import functools
import os
import random
import signal
import time

import pytest

from tests.faults.world import serves_again
from tests.support.processes import Service, children_of, processes_of, serves, wait_until

pytestmark = pytest.mark.selection
CHANCE = random.Random(7)


def some_moment() -> None:
    """Let a random part of a second pass: chance decides what is hit then."""
    time.sleep(CHANCE.uniform(0, 0.3))


def serving(service: Service) -> list[int]:
    """Return the workers, as soon as both of them serve."""

    def both() -> list[int]:
        pids = [pid for pid in children_of(service.process.pid) if serves(pid)]
        return pids if len(pids) == 2 else []

    return wait_until(both, 30)


def has_been_seen_to_end(service: Service, pid: int) -> bool:
    return pid not in children_of(service.process.pid)


def test_a_worker_is_killed(world, note, scale):
    times = scale(200, 8)
    with world.service() as service:
        with world.load(service) as history:
            for _ in range(times):
                victim = CHANCE.choice(serving(service))
                some_moment()
                os.kill(victim, signal.SIGKILL)
                wait_until(functools.partial(has_been_seen_to_end, service, victim))
            wait_until(serves_again(history))
        world.check(history)
    note("a worker killed -9", times, history.summary())


def test_the_whole_service_is_killed(world, note, scale):
    times = scale(20, 2)
    with world.service() as service:
        with world.load(service) as history:
            for _ in range(times):
                some_moment()
                for pid in processes_of(world.state_dir):
                    os.kill(pid, signal.SIGKILL)
                service.process.wait()
                service.start_again()
                wait_until(serves_again(history))
        world.check(history)
    note("the whole service killed -9", times, history.summary())
