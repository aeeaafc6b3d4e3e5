"""Metrics survive the ends of workers, and restart at zero with the service."""

import os
import signal
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator

import pytest
from prometheus_client.mmap_dict import mmap_key

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


def test_counting_allocates_nothing_that_a_full_disk_could_refuse(metered, whole_app):
    """A write to a page of a sparse file kills the process if the disk is full."""
    kinds = {"counter", "histogram", "gauge_livesum", "gauge_livemax"}
    wait_until(lambda: kinds <= {name.rpartition("_")[0] for name in files_of(metered)})
    sizes = {}
    for path in metered.directory.glob("*.db"):
        status = path.stat()
        sizes[path.name.rpartition("_")[0]] = status.st_size
        assert status.st_blocks * 512 >= status.st_size
    # The labels of all requests fit, with six statuses each.
    used_bytes = Counter[str]()
    for rule in whole_app.url_map.iter_rules():
        for method in rule.methods or ():
            for kind, name, label, times in (
                ("histogram", "request_seconds_bucket", "0.005", 13),
                ("counter", "requests_total", "200", 6),
            ):
                key = mmap_key(
                    "latchkey_requests",
                    f"latchkey_{name}",
                    ["method", "route", "x"],
                    [method, rule.rule, label],
                    "x" * 60,
                )
                used_bytes[kind] += times * (len(key) + 28)
    assert all(used < sizes[kind] for kind, used in used_bytes.items()), used_bytes
    assert used_bytes.keys() == {"counter", "histogram"}


_WITHOUT_ROOM = """
import os, resource, signal
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (4096, 4096))
from auth.core import metrics
metrics.count_in_files("counter", "histogram")
metrics.Counter("x", "x").inc()
print(os.listdir(os.environ["PROMETHEUS_MULTIPROC_DIR"]))
"""


def test_process_without_room_for_its_counts_runs_without_them(tmp_path):
    environment = {**os.environ, "PROMETHEUS_MULTIPROC_DIR": str(tmp_path)}
    result = subprocess.run(
        [sys.executable, "-c", _WITHOUT_ROOM], env=environment, capture_output=True, text=True, check=True
    )
    assert "metrics_not_counted" in result.stdout + result.stderr
    assert result.stdout.splitlines()[-1] == "[]"
