"""How many workers a service starts by itself: as many as cores that its container may use."""

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

from auth.core import cores as module
from auth.core.cores import cores
from tests.support.cases import cases

GROUPS = Path("/sys/fs/cgroup/cpu")
QUESTION = "from auth.core.settings import load; print(load(missing_secrets='ignore').workers)"


@pytest.fixture
def machine(monkeypatch, tmp_path):
    """Set the cores of the affinity, the groups of this process, and their files."""

    def set_up(groups: str, files: dict[str, str]) -> None:
        monkeypatch.setattr(os, "sched_getaffinity", lambda _: set(range(64)))
        (tmp_path / "groups").write_text(groups, errors="surrogateescape")
        for name, text in files.items():
            (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
            (tmp_path / name).write_text(text)
        monkeypatch.setattr(module, "_OWN_GROUPS", tmp_path / "groups")
        monkeypatch.setattr(module, "_GROUPS", tmp_path)

    return set_up


@cases(
    ("groups", "files", "expected"),
    [
        ("0::/\n", {"cpu.max": "200000 100000\n"}, 2),
        ("0::/\n", {"cpu.max": "150000 100000\n"}, 2),
        ("0::/\n", {"cpu.max": "10000 100000\n"}, 1),
        ("0::/\n", {"cpu.max": "max 100000\n"}, 64),
        ("0::/\n", {"cpu.max": "9900000 100000\n"}, 64),
        ("0::/\n", {}, 64),
        # A pod's limit may be that of the group above.
        ("0::/pod/app\n", {"pod/app/cpu.max": "max 100000", "pod/cpu.max": "300000 100000"}, 3),
        ("1:name=systemd:/\n0::/../app\n", {"cpu.max": "400000 100000"}, 4),
        # The first version of Linux' control groups has a folder for each controller.
        (
            "4:cpuset:/\n3:cpu,cpuacct:/app\n",
            {"cpu/app/cpu.cfs_quota_us": "150000", "cpu/app/cpu.cfs_period_us": "100000"},
            2,
        ),
        ("3:cpu,cpuacct:/\n", {"cpu/cpu.cfs_quota_us": "-1", "cpu/cpu.cfs_period_us": "100000"}, 64),
        # What no kernel should say counts for nothing.
        ("\nnonsense\n0::/a\u2028b:c/\udcff\n", {"a\u2028b:c/\udcff/cpu.max": "300000 100000"}, 3),
        ("0::/\n", {"cpu.max": "100000 0\n"}, 64),
        ("0::/\n", {"cpu.max": "-1 100000\n"}, 64),
        ("0::/\n", {"cpu.max": "1" * 400 + " 1\n"}, 64),
        ("0::/\n", {"cpu.max": "nonsense"}, 64),
        ("0::/\n", {"cpu.max": ""}, 64),
    ],
)
def test_quota_of_a_group_or_one_above_bounds_the_cores(machine, groups, files, expected):
    machine(groups, files)
    assert cores() == expected


@contextmanager
def group(quota: int) -> Iterator[Path]:
    """Make a group of processes with a quota, in the first version of Linux' control groups."""
    directory = GROUPS / f"latchkey-tests-{os.getpid()}"
    with suppress(OSError):
        directory.mkdir()
        (directory / "cpu.cfs_period_us").write_text("100000")
        (directory / "cpu.cfs_quota_us").write_text(str(quota))
    if not directory.exists():
        pytest.skip("NOTHING IS TESTED IN A GROUP WITH A QUOTA: this user may not make one")
    try:
        yield directory
    finally:
        directory.rmdir()


def test_service_in_a_group_with_half_a_core_has_one_worker(tmp_path):
    with group(50_000) as directory:
        script = f'echo $$ > {directory}/cgroup.procs && exec {sys.executable} -c "{QUESTION}"'
        environment = {"PATH": os.environ["PATH"], "PYTHONPATH": os.getcwd(), "AUTH_STATE_DIR": str(tmp_path)}
        process = subprocess.run(
            ["sh", "-c", script], env=environment, cwd=tmp_path, capture_output=True, text=True, check=False
        )
    assert (process.stdout, process.stderr) == ("1\n", "")
