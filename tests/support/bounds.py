"""Fails each test outside tests/system that starts a program, or takes more than ten seconds of processor time: the
longest takes three here, and another machine may be slower.

Python reports the start of a program as an audit event (PEP 578).
"""

import contextlib
import sys
import time
from collections.abc import Generator, Iterator
from pathlib import Path
from typing import Any

import pytest

TESTS = Path(__file__).resolve().parents[1]
SECONDS = 10
_STARTS = {
    *("subprocess.Popen", "os.system", "os.spawn", "os.posix_spawn", "os.exec", "os.fork", "os.forkpty"),
}
# Programs that the present phase started, each with the line of the tests that did.
_started: list[str] = []


@contextlib.contextmanager
def for_all_tests_of_the_worker() -> Iterator[None]:
    """Allow the start of a program that all tests of this process share."""
    before = len(_started)
    yield
    del _started[before:]


def _note(event: str, arguments: tuple[Any, ...]) -> None:
    # Except `fork`, the methods of multiprocessing have no event.
    if event in _STARTS or (event == "import" and str(arguments[0]).startswith("multiprocessing.popen_")):
        program = "".join(map(str, arguments[:1])).rpartition("/")[2]
        _started.append(f"{event} {program} in {_line()}")


def _line() -> str:
    frame = sys._getframe(2)
    while frame.f_back and not Path(frame.f_code.co_filename).is_relative_to(TESTS):
        frame = frame.f_back
    return f"{frame.f_code.co_filename}:{frame.f_lineno}"


sys.addaudithook(_note)


def _bounded(item: pytest.Item) -> Generator[None, object, object]:
    _started.clear()
    before = time.process_time()
    result = yield
    seconds = time.process_time() - before
    tests = item.config.rootpath / "tests"
    if item.path.is_relative_to(tests / "system"):
        return result
    reasons = [f"started a program: {started}" for started in _started[:1]]
    if seconds > SECONDS:
        reasons.append(f"took {seconds:.1f} s of processor time, of {SECONDS}")
    if reasons:
        place = "tests/system/" + str(item.path.relative_to(tests)).removeprefix("source/")
        pytest.fail(f"{item.nodeid} {' and '.join(reasons)}. Move it to {place}", pytrace=False)
    return result


@pytest.hookimpl(wrapper=True)
def pytest_runtest_setup(item: pytest.Item) -> Generator[None, object, object]:
    return (yield from _bounded(item))


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Generator[None, object, object]:
    return (yield from _bounded(item))
