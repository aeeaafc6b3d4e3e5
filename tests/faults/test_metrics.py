"""Metrics survive the ends of workers, and restart at zero with the service."""

import os
import shutil
import signal
from collections.abc import Iterator

import pytest

from tests.support.metered import Metered
from tests.support.processes import is_running, wait_until

pytestmark = pytest.mark.selection


@pytest.fixture(scope="module")
def metered(serve) -> Iterator[Metered]:
    """A service without delivery, in a directory with a file of a service that was killed."""
    metered = Metered(serve)
    metered.directory.mkdir(parents=True)
    (metered.directory / "counter_0.db").write_bytes(b"of a service that was killed")
    with metered:
        yield metered


def test_metrics_are_served_without_delivery_and_restart_at_zero(metered):
    assert metered.value("latchkey_database_up") == 1
    wait_until(lambda: metered.value("latchkey_workers") == 2)
    assert not [path for path in metered.directory.iterdir() if b"killed" in path.read_bytes()]


def test_files_that_are_still_empty_are_left_out(metered):
    empty = metered.directory / "counter_9.db"
    empty.touch()
    assert metered.value("latchkey_database_up") == 1
    empty.unlink()


def test_gauges_of_a_dead_worker_do_not_outlive_it_in_the_slot_of_another_process(metered):
    gauges = list(metered.directory.glob("gauge_livesum_*.db"))
    (slot,) = {"0", "1", "2"} - {path.stem[-1] for path in gauges}  # the one of the process that serves them
    shutil.copy(gauges[0], metered.directory / f"gauge_livesum_{slot}.db")
    (pid,) = metered.service.delivery_processes()
    os.kill(pid, signal.SIGKILL)
    wait_until(lambda: not is_running(pid))
    wait_until(metered.text, 30)
    assert metered.value("latchkey_workers") == 2


def test_totals_survive_a_killed_worker_without_new_files(metered):
    def slots() -> set[str]:
        return {path.name for path in metered.directory.glob("*.lock")}

    metered.client.get("/user")
    total, workers = metered.requests(), metered.workers()
    assert total > 0
    assert slots() == {"0.lock", "1.lock", "2.lock"}
    os.kill(min(workers), signal.SIGKILL)
    wait_until(lambda: metered.workers() != workers)
    assert metered.value("latchkey_workers") in (None, 1, 2)
    wait_until(lambda: len(metered.workers()) == 2 and metered.value("latchkey_workers") == 2)
    assert metered.requests() >= total
    assert slots() == {"0.lock", "1.lock", "2.lock"}


def test_totals_survive_a_reload(metered):
    metered.client.get("/user")
    total = metered.requests()
    before = [*metered.workers(), *metered.service.delivery_processes()]
    assert total > 0
    assert len(before) == 3
    metered.service.process.send_signal(signal.SIGHUP)
    wait_until(lambda: not any(map(is_running, before)), 30)
    wait_until(lambda: metered.value("latchkey_workers") == 2, 30)
    assert metered.requests() >= total
