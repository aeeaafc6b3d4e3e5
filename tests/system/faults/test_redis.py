"""Limits that are counted in Redis, by two workers: requests are served when it stops or freezes."""

import json
from collections.abc import Iterator

import pytest

from tests.support.awake import awake
from tests.support.processes import Service, wait_until
from tests.support.server import ServerClient, at_once, until_served
from tests.support.users import sign_in

WRONG = "Wrong-Horse-1"


@pytest.fixture(scope="module")
def redis_service(serve, redis_server) -> Iterator[tuple[Service, ServerClient]]:
    changes = {
        "AUTH_RATE_LIMIT_STORAGE": redis_server.url,
        "AUTH_RATE_LIMIT_LOGIN": "20 per 5 minutes",
        "AUTH_RATE_LIMIT_LOGIN_FAILURES": "2 per hour",
    }
    with serve(AUTH_RATE_LIMITS_ENABLED="true", **changes) as serving:
        yield serving


@pytest.fixture
def server(redis_service, redis_server, database, app) -> Iterator[ServerClient]:
    with redis_server.client() as client:
        client.flushall()
    yield redis_service[1]
    if redis_server.process.poll() is not None:
        redis_server.start()


@pytest.mark.parametrize("fault", ["stop", "freeze"])
def test_requests_are_served_and_logged_when_redis_fails(server, redis_service, redis_server, alice, fault):
    getattr(redis_server, fault)()
    length_before = len(redis_service[0].text())
    try:
        started_at = awake()
        answers = at_once(6, lambda _: server.post("/login-admin", json={}))
        assert {answer.status_code for answer in answers} == {400}
        assert awake() - started_at < 4
        # The counts of failed passwords do not depend on Redis.
        failed = [until_served(lambda: sign_in(server, alice.email, WRONG)).status_code for _ in range(3)]
        assert failed == [401, 401, 429]
    finally:
        redis_server.thaw()
    lines = wait_until(
        lambda: [
            line for line in redis_service[0].text()[length_before:].splitlines() if "storage_failed" in line
        ]
    )
    # Each worker throttles the line.
    reason = "Redis does not respond: requests are not limited"
    assert {(line["reason"], line["times"] > 0) for line in map(json.loads, lines)} == {(reason, True)}
