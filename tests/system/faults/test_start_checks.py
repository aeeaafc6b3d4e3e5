"""What the start says about servers that it cannot use, and about settings for tests."""

import json
from types import SimpleNamespace
from typing import Any

import pytest

from tests.support.processes import Service, free_port
from tests.system.faults.dependencies import PgBouncer


@pytest.fixture
def bouncer(database_url, state_dir, database):
    if "host=%2F" not in database_url:
        pytest.skip("NOTHING IS TESTED BEHIND PGBOUNCER: TEST_DATABASE_URL has no socket")
    deployment: Any = SimpleNamespace(postgres=SimpleNamespace(url=database_url), state_dir=state_dir)
    with PgBouncer(deployment) as bouncer:
        yield bouncer


def without_state_dir(environment, **changes):
    return {name: value for name, value in (environment | changes).items() if name != "AUTH_STATE_DIR"}


def test_start_refuses_prepared_statements_behind_pgbouncer(bouncer, environment, state_dir):
    settings = without_state_dir(environment, DATABASE_URL=bouncer.url)
    status, output = Service(state_dir, **settings).refuses_to_start()
    line = (
        "DATABASE_URL: Leads to a pooler in transaction mode, such as PgBouncer. Set AUTH_DB_PREPARE=false."
    )
    assert (status, json.loads(output)["event"]) == (1, line)
    with Service(state_dir, **settings, AUTH_DB_PREPARE="false") as service:
        assert service.get("/health")[0] == 200


@pytest.mark.parametrize(("enabled", "times"), [("true", 1), ("false", 0)])
def test_start_reports_that_redis_does_not_respond(environment, state_dir, database, enabled, times):
    settings = without_state_dir(
        environment,
        AUTH_RATE_LIMITS_ENABLED=enabled,
        AUTH_RATE_LIMIT_STORAGE=f"redis://:topsecret@127.0.0.1:{free_port()}",
    )
    with Service(state_dir, **settings) as service:
        assert service.get("/health")[0] == 200
    line = "AUTH_RATE_LIMIT_STORAGE: Redis does not respond. Requests are not limited until it does."
    line += " Start it, or correct the URL."
    assert service.said().count(line) == times
    assert "topsecret" not in service.text()


def test_start_warns_of_settings_for_tests_at_a_public_url(environment, state_dir, database):
    settings_for_tests = {"AUTH_RATE_LIMITS_ENABLED": "false", "AUTH_SMTP_URL": "console"}
    lines = (
        "AUTH_RATE_LIMITS_ENABLED is false, and AUTH_BASE_URL is not this machine: passwords can be guessed."
        " Set it to true.",
        "AUTH_SMTP_URL is console, and AUTH_BASE_URL is not this machine: emails are printed, with links that"
        " sign in, and not sent. Set it to a mail server.",
    )
    for base_url, times in ((None, 0), ("https://auth.example.com", 1)):
        public = {"AUTH_BASE_URL": base_url} if base_url else {}
        with Service(state_dir, **without_state_dir(environment, **settings_for_tests, **public)) as service:
            assert service.get("/health")[0] == 200
        assert [service.said().count(line) for line in lines] == [times] * 2


@pytest.mark.parametrize("name", ["HTTPS_PROXY", "https_proxy", "ALL_PROXY"])
def test_start_warns_that_the_proxy_of_the_network_is_not_used(environment, state_dir, database, name):
    line = (
        f"{name} is set, but the service connects to providers, hooks and webhooks without a proxy, to check each"
        " address. Let this machine reach them directly, and unset it for the service."
    )
    with Service(
        state_dir, **without_state_dir(environment, **{name: "http://proxy:topsecret@127.0.0.1:9"})
    ) as service:
        assert service.said().count(line) == 1
        assert "topsecret" not in service.text()
