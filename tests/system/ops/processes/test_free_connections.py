"""A node that may need more connections than others leave is told so at its start, and by the doctor."""

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


def said(state_dir, url) -> list[str]:
    """Return what a start says of connections."""
    settings = {"DATABASE_URL": url, "AUTH_WORKERS": "2", "AUTH_DELIVER": "false"}
    with Service(state_dir, **settings) as service:
        return [line for line in service.text().splitlines() if "connections" in line]


def test_connections_of_other_programs_are_not_free(new_state_dir, limited_url):
    with ExitStack() as others:
        for _ in range(5):
            others.enter_context(closing(psycopg2.connect(limited_url)))
        (line,) = said(new_state_dir, limited_url)
        assert LACKING.format(15) in line
        assert "Set AUTH_WORKERS=1, or raise the limit" in line
    assert said(new_state_dir, limited_url) == []


def test_own_connections_of_a_node_are_not_taken_from_it(limited_url, parts):
    with ExitStack() as own:
        pools = [own.enter_context(closing(Database(limited_url, size=1))) for _ in range(4)]
        for pool in pools:
            assert (
                start_checks.connections_problem(dataclasses.replace(parts.settings, workers=2), pool) is None
            )
        for _ in range(3):
            own.enter_context(closing(psycopg2.connect(limited_url, application_name="other")))
        problem = start_checks.connections_problem(dataclasses.replace(parts.settings, workers=2), pools[0])
        assert problem is not None
        assert problem[0] == LACKING.format(17)
