"""Rate limits that are counted in Redis or in memory."""

import pytest

from tests.support.users import WRONG_PASSWORD, sign_in
from tests.web.test_limits import ask, assert_refused, limits

pytest_plugins = ["tests.support.storing"]


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
        counts = [int(redis.get(key)) for key in redis.keys("*/sign_in_with_password/*")]
        assert counts == ([3] if storage == "redis" else [])
