"""The start and the doctor report a node that may need more connections than Postgres has free."""

import dataclasses
from contextlib import ExitStack, closing
from urllib.parse import urlsplit

import psycopg2
import pytest

from auth.ops.processes import start_checks
from sql import Database
from tests.support.databases import run
from tests.support.processes import Service

LACKING = "This node may open 18 connections, but Postgres has {} free: under load, requests wait or fail."


@pytest.fixture
def limited_url(new_database) -> str:
    """The URL of a database with twenty connections."""
    url = new_database()
    run(url, f'ALTER DATABASE "{urlsplit(url).path[1:]}" CONNECTION LIMIT 20')
    return url


def lines_about_connections(state_dir, url) -> list[str]:
    """Return the lines of a start about connections."""
    settings = {"DATABASE_URL": url, "AUTH_WORKERS": "2", "AUTH_DELIVER": "false"}
    with Service(state_dir, **settings) as service:
        return [line for line in service.text().splitlines() if "connections" in line]


def test_connections_of_other_programs_are_not_free(new_state_dir, limited_url):
    with ExitStack() as stack:
        for _ in range(5):
            stack.enter_context(closing(psycopg2.connect(limited_url)))
        (line,) = lines_about_connections(new_state_dir, limited_url)
        assert LACKING.format(15) in line
        assert "Set AUTH_WORKERS=1, or raise the limit" in line
    assert lines_about_connections(new_state_dir, limited_url) == []


def test_own_connections_of_a_node_count_as_free(limited_url, parts):
    with ExitStack() as stack:
        pools = [stack.enter_context(closing(Database(limited_url, size=1))) for _ in range(4)]
        for pool in pools:
            assert (
                start_checks.connections_problem(dataclasses.replace(parts.settings, workers=2), pool) is None
            )
        for _ in range(3):
            stack.enter_context(closing(psycopg2.connect(limited_url, application_name="other")))
        problem = start_checks.connections_problem(dataclasses.replace(parts.settings, workers=2), pools[0])
        assert problem is not None
        assert problem[0] == LACKING.format(17)
