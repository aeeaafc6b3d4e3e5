"""The roles of the database after an upgrade. Their names are those of no other test: all databases of a server share roles."""

from collections.abc import Callable, Iterator

import pytest
from psycopg2.extensions import parse_dsn

from auth.core.settings.state import of_requests
from sql import schema
from tests.sql.test_roles import PUBLIC_SINCE_15, as_role, run
from tests.support import catalog, oldest_release
from tests.support.tables import Rows


@pytest.fixture(scope="module")
def requests_url(database_url: str) -> str:
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
def owned(requests_url, make_role, new_database) -> Callable[..., str]:
    """Make a database of a role that is no superuser, perhaps filled by a script, and return its owner's URL."""

    def make(options: str = "LOGIN", script: str = "") -> str:
        owner = make_role("former_owner", options)
        url = as_role(new_database(PUBLIC_SINCE_15, f"OWNER {owner}"), owner)
        run(url, script or "SELECT")
        return url

    return make


class TestGrants:
    def test_database_of_the_oldest_release_is_upgraded_for_both_roles(
        self, owned, make_role, oldest_release_files, created
    ):
        owner = owned(script=oldest_release.script(oldest_release_files))
        requests = as_role(owner, make_role("former_requests"))
        assert schema.apply(owner, requests_url=requests)[-1] == "functions"
        assert catalog.lines(owner) == catalog.lines(created)
        assert run(requests, "SELECT count(*) FROM users") == [(0,)]


@pytest.fixture
def created(new_database) -> str:
    """The URL of a database that this release created."""
    url = new_database()
    schema.apply(url)
    return url
