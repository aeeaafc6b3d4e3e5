"""Databases of earlier releases."""

import pytest

from auth.web.context import EXTENSION
from sql import schema
from tests.sql.test_schema import ROWS_OF_0_2_0, TOKEN_OF_0_2_0, execute
from tests.support import catalog, oldest_release
from tests.support.apps import new_app
from tests.support.databases import new_databases
from tests.support.links import hand_in
from tests.support.users import refresh, session_of, sign_in

# The code of 0.2.0 made the password's hash and, with this secret, the refresh token.
SECRET_OF_0_2_0 = "k3Jh8sPq0Zx7Vn2Lw9Tb4Rm6Yc1Gf5Da"
REFRESH_TOKEN_OF_0_2_0 = "vWggxYowT2KovUmkzYaKqAAAAAAAAAAA3ZEN6toxhRmr-rQkkMNeJbRO"


@pytest.fixture(scope="module")
def make_database(all_rows, database_url):
    with new_databases(all_rows, database_url) as make:
        yield make


@pytest.fixture(scope="module")
def upgraded(make_database, oldest_release_files):
    """The URL of an upgraded database of the oldest release."""
    url = make_database(oldest_release.script(oldest_release_files) + ROWS_OF_0_2_0)
    # Otherwise a node of the oldest release would restore its own functions.
    assert schema.apply(url) == [*(path.stem for path in schema.MIGRATIONS.values()), "functions"]
    return url


@pytest.fixture(scope="module")
def created(make_database):
    """The URL of a database that this release created, with the same rows."""
    url = make_database()
    schema.apply(url)
    execute(url, ROWS_OF_0_2_0)
    return url


@pytest.fixture
def client_of_upgraded(environment, upgraded):
    app = new_app({**environment, "DATABASE_URL": upgraded, "AUTH_SECRET_KEY": SECRET_OF_0_2_0})
    yield app.test_client()
    app.extensions[EXTENSION].db.close()


class TestUpgrade:
    def test_upgraded_schema_equals_a_new_one(self, upgraded, created):
        assert catalog.lines(upgraded) == catalog.lines(created)

    def test_upgrade_keeps_passwords_links_and_refresh_tokens(self, client_of_upgraded):
        for response in (
            hand_in(client_of_upgraded, "magiclink", TOKEN_OF_0_2_0),
            sign_in(client_of_upgraded, "alice@example.com"),
            refresh(client_of_upgraded, REFRESH_TOKEN_OF_0_2_0),
        ):
            session = session_of(client_of_upgraded, response)
            assert session.get("/user").json["email"] == "alice@example.com"
            assert session.put("/user", json={"data": {"x": 1}}).json["user_metadata"] == {"x": 1}
