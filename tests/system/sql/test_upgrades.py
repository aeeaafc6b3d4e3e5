"""Databases of earlier releases."""

import psycopg2
import pytest

from auth.web.context import EXTENSION
from sql import schema
from tests.sql.test_schema import OLD_ROWS, TOKEN, execute
from tests.support import catalog, oldest_release
from tests.support.apps import new_app
from tests.support.commands import run_with_settings
from tests.support.databases import new_databases
from tests.support.links import hand_in
from tests.support.users import refresh, session_of, sign_in

# Release 0.2.0 made the hash of the password and, with this secret, the refresh token.
SECRET = "k3Jh8sPq0Zx7Vn2Lw9Tb4Rm6Yc1Gf5Da"
REFRESH_TOKEN = "vWggxYowT2KovUmkzYaKqAAAAAAAAAAA3ZEN6toxhRmr-rQkkMNeJbRO"


@pytest.fixture(scope="module")
def make_database(all_rows, database_url):
    with new_databases(all_rows, database_url) as make:
        yield make


@pytest.fixture(scope="module", params=[schema.OLDEST_COMMIT, schema.BRIDGE_COMMIT], ids=["0.6.0", "0.6.1"])
def upgraded(make_database, tmp_path_factory, request):
    """The URL of an upgraded database of an earlier release."""
    release = oldest_release.unpack(tmp_path_factory.mktemp("release"), request.param)
    url = make_database(oldest_release.script(release) + OLD_ROWS)
    # Otherwise a node of that release would restore its own functions.
    steps = schema.apply(url)
    newest = [path.stem for path in schema.MIGRATIONS.values()]
    assert steps == [*newest[len(newest) + 1 - len(steps) :], "functions"]
    return url


@pytest.fixture(scope="module")
def created(make_database):
    """The URL of a database that this release created, with the same rows."""
    url = make_database()
    schema.apply(url)
    execute(url, OLD_ROWS)
    return url


@pytest.fixture
def client_of_upgraded(environment, upgraded):
    app = new_app({**environment, "DATABASE_URL": upgraded, "AUTH_SECRET_KEY": SECRET})
    yield app.test_client()
    app.extensions[EXTENSION].db.close()


class TestUpgrade:
    def test_upgraded_schema_equals_a_new_one(self, upgraded, created):
        assert catalog.lines(upgraded) == catalog.lines(created)

    def test_upgrade_keeps_passwords_links_and_refresh_tokens(self, client_of_upgraded):
        for response in (
            hand_in(client_of_upgraded, "magiclink", TOKEN),
            sign_in(client_of_upgraded, "alice@example.com"),
            refresh(client_of_upgraded, REFRESH_TOKEN),
        ):
            session = session_of(client_of_upgraded, response)
            assert session.get("/user").json["email"] == "alice@example.com"
            assert session.put("/user", json={"data": {"x": 1}}).json["user_metadata"] == {"x": 1}


class TestOlderDatabase:
    """One of 0.5.2."""

    @pytest.fixture
    def url(self, make_database, tmp_path):
        return make_database(oldest_release.script(oldest_release.unpack(tmp_path, "f60e08e6")))

    def test_command_and_start_name_the_release_to_go_through(self, url, environment):
        before = catalog.lines(url)
        migrated = run_with_settings(environment | {"DATABASE_URL": url}, "migrate")
        assert (migrated.exit_code, migrated.output.count("\n")) == (1, 1)
        assert (
            f"from before 0.6.0. Upgrade it with release 0.6.1 (commit {schema.BRIDGE_COMMIT}) first"
            in migrated.output
        )
        with pytest.raises(psycopg2.ProgrammingError, match=r"from before 0\.6\.0"):
            schema.pending(url)
        assert catalog.lines(url) == before
