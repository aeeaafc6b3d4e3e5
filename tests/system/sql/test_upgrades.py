"""Upgrades of databases of earlier releases."""

from contextlib import closing

import pytest

from auth.web.context import EXTENSION
from sql import schema
from tests.support import catalog, oldest_release
from tests.support.apps import new_app
from tests.support.commands import run_with_settings
from tests.support.databases import new_databases, run
from tests.support.environment import ENVIRONMENT, SERVICE_ROLE_KEY
from tests.support.links import hand_in
from tests.support.processes import Service
from tests.support.server import ServerClient
from tests.support.users import refresh, register, session_of, sign_in

COMMITS = {schema.OLDEST_RELEASE: schema.OLDEST_COMMIT, schema.BRIDGE_RELEASE: schema.BRIDGE_COMMIT}
# Releases whose database must go through BRIDGE_RELEASE.
OLDER = {"0.6.0": "84422159", "0.6.1": "909be80b"}


@pytest.fixture(scope="module")
def make_database(all_rows, database_url):
    with new_databases(all_rows, database_url) as make:
        yield make


@pytest.fixture(scope="module", params=COMMITS)
def upgraded(request, make_database, state_dir, tmp_path_factory):
    """The URL of an upgraded database that a service of that release has created, with the link and the refresh token
    that it gave Alice.
    """
    files = oldest_release.unpack(tmp_path_factory.mktemp("release"), COMMITS[request.param])
    url, key = make_database(), {"apikey": SERVICE_ROLE_KEY}
    with (
        Service(state_dir, directory=files, **ENVIRONMENT | {"DATABASE_URL": url}) as service,
        closing(ServerClient(service.port)) as client,
    ):
        assert client.get("/health").json["version"] == request.param
        alice = register(client, key, "alice@example.com")
        body = {"type": "magiclink", "email": alice.email}
        link = client.post("/admin/generate_link", json=body, headers=key).json["hashed_token"]
        refresh_token = alice.sign_in().refresh_token
    ((version,),) = run(url, "SELECT max(version) FROM schema_version")
    missing = [path.stem for number, path in schema.MIGRATIONS.items() if number > version]
    # Otherwise a node of that release would restore its own functions.
    assert schema.apply(url) == [*missing, "functions"]
    return url, link, refresh_token


class TestUpgrade:
    def test_upgraded_schema_equals_a_new_one(self, upgraded, make_database):
        schema.apply(created := make_database())
        assert catalog.lines(upgraded[0]) == catalog.lines(created)

    def test_upgrade_keeps_passwords_links_and_refresh_tokens(self, upgraded, environment):
        url, link, refresh_token = upgraded
        app = new_app(environment | {"DATABASE_URL": url})
        client = app.test_client()
        for response in (
            hand_in(client, "magiclink", link),
            sign_in(client, "alice@example.com"),
            refresh(client, refresh_token),
        ):
            session = session_of(client, response)
            assert session.get("/user").json["email"] == "alice@example.com"
            assert session.put("/user", json={"data": {"x": 1}}).json["user_metadata"] == {"x": 1}
        app.extensions[EXTENSION].db.close()


@pytest.mark.parametrize("commit", OLDER.values(), ids=OLDER)
def test_older_database_is_refused_until_the_release_that_the_message_names_has_upgraded_it(
    commit, make_database, state_dir, tmp_path
):
    oldest_release.migrate(oldest_release.unpack(tmp_path / "old", commit), url := make_database(), state_dir)
    before, select = catalog.lines(url), "SELECT version, applied_at FROM schema_version"
    ((version, _),) = rows = run(url, select)
    line = (
        f"DATABASE_URL: The schema cannot be applied: the schema has version {version}, from before 0.7.0."
        f" Upgrade it to 0.7.1 (commit {schema.BRIDGE_COMMIT}) first: docs/deployment.md says how.\n"
    )
    settings = {"DATABASE_URL": url, "AUTH_STATE_DIR": str(state_dir)}
    result = run_with_settings(settings, "migrate")
    assert (result.exit_code, result.output) == (1, f"Error: {line}")
    assert Service(state_dir, DATABASE_URL=url).refuses_to_start() == (1, line)
    assert (catalog.lines(url), run(url, select)) == (before, rows)

    bridge = oldest_release.unpack(tmp_path / "bridge", schema.BRIDGE_COMMIT)
    oldest_release.migrate(bridge, url, state_dir)
    assert run_with_settings(settings, "migrate").exit_code == 0
    schema.apply(created := make_database())
    assert catalog.lines(url) == catalog.lines(created)
