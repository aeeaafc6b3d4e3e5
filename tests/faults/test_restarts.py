"""The service restarts under load, by generations of workers or by instances: no request fails."""

import signal
from typing import Any

import pytest

from tests.faults.world import serves_again
from tests.support.processes import PATIENT_GUNICORN, Service, children_of, serves, wait_until


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


def assert_none_failed(history: Any) -> None:
    assert (history.statuses[None], history.statuses[503]) == (0, 0), history.summary()


@pytest.mark.selection
def test_reload_fails_no_request(world, note, scale):
    times = scale(10, 2)
    with world.service(PATIENT_GUNICORN) as service:
        with world.load(service) as history:
            for _ in range(times):
                reload(service)
                wait_until(serves_again(history))
        world.check(history)
    note("restarted by HUP", times, history.summary())
    assert_none_failed(history)


def test_reload_during_a_reload_fails_no_request(world, note):
    times = 10
    with world.service(PATIENT_GUNICORN) as service:
        with world.load(service) as history:
            for _ in range(times):
                before = set(children_of(service.process.pid))
                service.process.send_signal(signal.SIGHUP)
                wait_until(lambda old=before: set(children_of(service.process.pid)) - old)  # type: ignore[misc]
                reload(service)
                wait_until(serves_again(history))
        world.check(history)
    note("restarted by HUP twice at once", times, history.summary())
    assert_none_failed(history)


@pytest.mark.selection
def test_rolling_restart_of_two_instances_fails_no_request(world, note, scale):
    times = scale(10, 2)
    with world.service(PATIENT_GUNICORN) as one, world.service(PATIENT_GUNICORN) as two:
        with world.load(one, two) as history:
            for number in range(times):
                restart((one, two)[number % 2])
                wait_until(serves_again(history))
        world.check(history)
    note("two instances restarted in turn", times, history.summary())
    assert_none_failed(history)
