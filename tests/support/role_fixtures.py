"""Fixtures of the tests of the database's roles, which load this module as a plugin."""

from collections.abc import Callable, Iterator

import pytest
from psycopg2.extensions import parse_dsn

from auth.core.settings.state import of_requests
from sql import schema
from tests.support.databases import as_role, run
from tests.support.tables import Rows

# In Postgres 14 an administrator has to do so: docs/deployment.md.
_PUBLIC_SINCE_15 = (
    "ALTER SCHEMA public OWNER TO pg_database_owner; REVOKE CREATE ON SCHEMA public FROM PUBLIC"
)


@pytest.fixture(scope="module")
def url_of_requests(database_url: str) -> str:
    """The database for the role of requests, also in that of `TEST_DATABASE_URL`, where other tests run as its owner."""
    url = of_requests(database_url)
    if url == database_url or "host" not in parse_dsn(url):
        pytest.skip(
            "NOT TESTED: TEST_DATABASE_URL is not postgresql://postgres@/NAME?host=DIRECTORY, of a superuser"
        )
    schema.apply(database_url, requests_url=url)
    return url


@pytest.fixture
def make_role(all_rows: Rows) -> Iterator[Callable[..., str]]:
    """Make a role, or only remember its name, and return the name; the role is dropped at the end."""
    names: list[str] = []

    def make(name: str, options: str | None = "LOGIN") -> str:
        names.append(name)
        if options is not None:
            all_rows.run(f"CREATE ROLE {name} {options}")
        return name

    yield make
    for name in reversed(names):
        all_rows.run(f"DROP ROLE IF EXISTS {name}")


@pytest.fixture
def owned(url_of_requests, make_role, new_database) -> Callable[..., str]:
    """Make a database of a role that is no superuser, perhaps filled by a script, and return its owner's URL.

    Roles belong to the whole server: each file of tests has a `name` of its own.
    """

    def make(options: str = "LOGIN", script: str = "", *, name: str = "own_owner") -> str:
        owner = make_role(name, options)
        url = as_role(new_database(_PUBLIC_SINCE_15, f"OWNER {owner}"), owner)
        run(url, script or "SELECT")
        return url

    return make
