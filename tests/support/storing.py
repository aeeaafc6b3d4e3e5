"""A fixture of the tests of storages for rate limits, which load this module as a plugin."""

from collections.abc import Callable, Iterator
from typing import Any

import pytest


@pytest.fixture
def storing(make_app) -> Iterator[Callable[..., Any]]:
    """Make a client of an application with another storage. The limiter of a process has that of the newest
    application.
    """

    def make(uri: str) -> Any:
        changes = {"AUTH_RATE_LIMIT_STORAGE": uri, "AUTH_RATE_LIMIT_LOGIN": "2 per 5 minutes"}
        return make_app(fresh=True, AUTH_RATE_LIMITS_ENABLED="true", **changes).test_client()

    yield make
    make_app(fresh=True)
