"""The roles of the database after an upgrade. Their names are those of no other test: all databases of a server share roles."""

import pytest

from sql import schema
from tests.support import catalog, oldest_release
from tests.support.databases import as_role, run

pytest_plugins = ["tests.support.role_fixtures"]


@pytest.fixture
def owner_name() -> str:
    return "former_owner"


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
