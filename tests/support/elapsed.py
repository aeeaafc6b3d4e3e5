"""The run time of a test, instead of bounds that a busy machine breaks. A plugin that conftest.py loads."""

import time

import pytest

_began_at = 0.0


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup() -> None:
    global _began_at
    _began_at = time.monotonic()


def assert_left(left: float, *, of: float) -> None:
    """Check the rest of some seconds that began in this test: all except its own run time."""
    ran = time.monotonic() - _began_at
    assert of - ran - 1 <= left <= of, f"{left} of {of} s are left after {ran:.1f} s"
