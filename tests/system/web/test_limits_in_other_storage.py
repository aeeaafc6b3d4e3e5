"""Rate limits that are counted in Redis or in memory."""

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from tests.support.users import WRONG_PASSWORD, sign_in
from tests.web.test_limits import ask, assert_refused, limits


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


@pytest.mark.parametrize("storage", ["memory", "redis"])
def test_other_storage_counts_requests_and_the_database_failed_passwords(
    storing, redis_server, alice, database, storage
):
    with redis_server.client() as redis:
        redis.flushall()
        client = storing("memory://" if storage == "memory" else redis_server.url)
        assert limits(sign_in(client, alice.email, WRONG_PASSWORD)) == (2, 1)
        assert limits(ask(client, "POST", "/login-admin")) == (2, 0)
        assert_refused(ask(client, "POST", "/login-admin"), 300, 2)
        assert (database.count("request_counts"), database.count("failure_counts")) == (0, 4)
        stored = [int(redis.get(key)) for key in redis.keys("*/sign_in_with_password/*")]
        assert stored == ([3] if storage == "redis" else [])
