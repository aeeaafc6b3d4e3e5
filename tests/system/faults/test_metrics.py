"""Metrics survive the ends of workers, and restart at zero with the service."""

import os
import signal
from collections.abc import Iterator

import pytest

from tests.support.metered import Metered
from tests.support.processes import is_running, wait_until


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


def test_any_statement_that_fails_leaves_the_other_metrics_and_says_so(metered, all_rows):
    assert metered.value("latchkey_database_up") == 1
    all_rows.run("ALTER TABLE webhooks RENAME TO moved")
    try:
        # The rows are reused for five seconds.
        wait_until(lambda: metered.value("latchkey_database_up") != 1)
        assert metered.value("latchkey_database_up") == 0
        assert (metered.value("latchkey_workers"), metered.value("latchkey_lock_waits")) == (2, None)
    finally:
        all_rows.run("ALTER TABLE moved RENAME TO webhooks")
    wait_until(lambda: metered.value("latchkey_database_up") == 1)


def files_of(metered: Metered) -> set[str]:
    return {path.name for path in metered.directory.iterdir()}


def processes_of(metered: Metered) -> set[int]:
    return {*metered.workers(), *metered.service.delivery_processes()}


@pytest.mark.parametrize("signal_to", ["processes", "master"])
def test_totals_survive_a_kill_and_a_reload_without_new_files(metered, signal_to):
    metered.client.get("/user")
    total, before = metered.requests(), processes_of(metered)
    assert total > 0
    assert len(before) == 3
    wait_until(lambda: {"gauge_livesum_0.db", "gauge_livesum_1.db"} <= files_of(metered))
    files = {name for name in files_of(metered) if "livesum" not in name}
    if signal_to == "master":
        metered.service.process.send_signal(signal.SIGHUP)
    else:
        for pid in before:
            os.kill(pid, signal.SIGKILL)
    wait_until(lambda: not any(map(is_running, before)), 30)
    wait_until(lambda: metered.value("latchkey_workers") == 2)
    assert metered.requests() >= total
    if signal_to == "processes":
        assert {name for name in files_of(metered) if "livesum" not in name} == files
