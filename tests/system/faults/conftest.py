"""How the tests of faults are run, and the table that they print at the end."""

import subprocess
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import astuple, dataclass
from pathlib import Path
from typing import Any

import pytest

from auth.ops.processes.embedded_postgres import EmbeddedPostgresError
from tests.system.faults.deployment import Deployment


@dataclass(frozen=True)
class Line:
    """A fault, how often it was caused, and the observation."""

    fault: str
    times: str
    seen: str


LINES: list[Line] = []


def pytest_addoption(parser: Any) -> None:
    parser.addoption(
        "--selection", action="store_true", help="run the tests of faults that CI runs, and fewer times each"
    )


def pytest_collection_modifyitems(config: Any, items: list[Any]) -> None:
    if config.getoption("--selection"):
        left_out = [
            item for item in items if "faults" in item.path.parts and not item.get_closest_marker("selection")
        ]
        config.hook.pytest_deselected(items=left_out)
        items[:] = [item for item in items if item not in left_out]


def pytest_sessionfinish(session: Any) -> None:
    if hasattr(session.config, "workeroutput"):
        session.config.workeroutput["faults"] = list(map(astuple, LINES))


def pytest_testnodedown(node: Any) -> None:
    LINES.extend(Line(*each) for each in getattr(node, "workeroutput", {}).get("faults", ()))


def pytest_terminal_summary(terminalreporter: Any) -> None:
    if LINES:
        terminalreporter.section("FAULTS: what was done, how often, and what was seen")
        width = max(len(line.fault) for line in LINES)
        for line in LINES:
            terminalreporter.line(f"{line.fault:{width}}  {line.times:>10}  {line.seen}")


@pytest.fixture(scope="session", autouse=True)
def _patient_pool() -> None:
    """Override the pool fixture of the other tests."""


@pytest.fixture(scope="session")
def note() -> Callable[[str, Any, str], None]:
    """Add a line to the closing table: the fault, how often it was caused, the observation."""
    return lambda fault, times, seen: LINES.append(Line(fault, str(times), seen))


@pytest.fixture
def scale(request: Any) -> Callable[[int, int], int]:
    """Choose the number of repetitions: `scale(200, 15)` is 200, and 15 in the selection."""
    return lambda whole, selection: selection if request.config.getoption("--selection") else whole


@pytest.fixture
def deployment() -> Iterator[Deployment]:
    yield from _deployments()


@pytest.fixture(scope="module")
def shared_deployment() -> Iterator[Deployment]:
    yield from _deployments()


@pytest.fixture
def small_disk() -> Iterator[Path]:
    """A file system with little more room than a database needs."""
    with tempfile.TemporaryDirectory(prefix="latchkey-tests-") as directory:
        command = ["mount", "-t", "tmpfs", "-o", "size=160m,mode=755", "tmpfs", directory]
        if subprocess.run(command, capture_output=True, check=False).returncode != 0:
            pytest.skip(
                "NO DISK IS FULL IN THESE TESTS: this needs root, and a machine where it may mount a tmpfs"
            )
        yield Path(directory)
        subprocess.run(["umount", "--lazy", directory], check=True)


def _deployments() -> Iterator[Deployment]:
    if not Path("/proc/self/task").exists():
        pytest.skip("NO FAULT IS TESTED: this looks for processes in /proc, which only Linux has")
    try:
        with Deployment() as made:
            yield made
    except EmbeddedPostgresError as error:
        pytest.skip(f"NO FAULT IS TESTED: {error}")
