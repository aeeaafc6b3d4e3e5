"""The disk of Postgres is full for a while: requests get 503, no change is half done, and the service
recovers.
"""

import contextlib
import os
import subprocess
import tempfile
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import pytest

from tests.faults.world import World, serves_again
from tests.support.processes import wait_until

pytestmark = [pytest.mark.selection, pytest.mark.root]


@pytest.fixture
def small_disk() -> Iterator[Path]:
    """A file system with little more room than a database needs."""
    with tempfile.TemporaryDirectory(prefix="latchkey-tests-") as directory:
        mounted = subprocess.run(
            ["mount", "-t", "tmpfs", "-o", "size=160m,mode=755", "tmpfs", directory],
            capture_output=True,
            check=False,
        )
        if mounted.returncode != 0:
            pytest.skip(
                "NO DISK IS FULL IN THESE TESTS: this needs root, and a machine where it may mount a file system (tmpfs)"
            )
        yield Path(directory)
        subprocess.run(["umount", "--lazy", directory], check=True)


def fill(disk: Path) -> Path:
    """Fill the disk with a file, and return it."""
    ballast = disk / "ballast"
    with ballast.open("wb", buffering=0) as file, contextlib.suppress(OSError):
        while True:
            file.write(b"0" * 4096)
    return ballast


def serves_or_starts(world: World, serves: Callable[[], bool]) -> bool:
    """Return whether requests are served; start a Postgres that has ended, as an operator does."""
    # A Postgres that has no room may end only once it has room again.
    if world.postgres.has_ended():
        world.postgres.stop()
        world.postgres.start()
    return serves()


def test_service_recovers_from_a_full_disk(small_disk, note, scale):
    times = scale(5, 1)
    with World(small_disk, max_wal_size="48MB", min_wal_size="32MB") as world, world.service() as service:
        with world.load(service) as history:
            history.may_lose_counters = True  # without room for its log Postgres crashes
            for _ in range(times):
                refused = history.statuses[503]
                ballast = fill(small_disk)
                wait_until(lambda before=refused: history.statuses[503] > before + 20, 60)  # type: ignore[misc]
                os.unlink(ballast)
                wait_until(partial(serves_or_starts, world, serves_again(history)), 60)
        world.check(history)
    note("the disk of Postgres full", times, history.summary())
