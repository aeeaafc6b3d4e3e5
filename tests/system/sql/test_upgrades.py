"""Databases of earlier releases."""

import pytest

from auth.web.context import EXTENSION
from sql import schema
from tests.sql.test_schema import ALICE, ROWS_OF_0_2_0, SESSION, TOKEN_OF_0_2_0, execute
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


GATE, WIKI = "3d6c9b0e-5a0f-4a53-9f0d-0f6a1c7c1a01", "3d6c9b0e-5a0f-4a53-9f0d-0f6a1c7c1a02"
CLIENTS_OF_0_5_1 = f"""
INSERT INTO oauth_clients (id, name, token_endpoint_auth_method, secret_hash, redirect_uris, grant_types, gate_origin)
VALUES ('{GATE}', 'Docs', 'client_secret_basic', '', '{{https://docs.example.com/.latchkey/callback}}',
        '{{authorization_code}}', 'https://docs.example.com'),
       ('{WIKI}', 'Wiki', 'client_secret_basic', '', '{{https://wiki.example.com/callback}}',
        '{{authorization_code}}', NULL);
INSERT INTO oauth_grants (id, user_id, client_id, scopes)
SELECT gen_random_uuid(), '{ALICE}', id, '{{profile}}' FROM oauth_clients;
INSERT INTO sessions (user_id, method, grant_id, scopes, auth_time, opened_by)
SELECT '{ALICE}', 'oauth_client', id, '{{profile}}', now(), '{SESSION}' FROM oauth_grants;
INSERT INTO gate_sessions (token_hash, user_id, session_id, client_id)
SELECT sha256('cookie'), s.user_id, s.id, g.client_id
  FROM sessions AS s JOIN oauth_grants AS g ON g.id = s.grant_id WHERE g.client_id = '{GATE}';
INSERT INTO oauth_requests (client_id, id_hash, browser_hash, redirect_uri, scopes, expires_at)
SELECT id, sha256(id::text::bytea), '', redirect_uris[1], '{{}}', now() + interval '1 hour' FROM oauth_clients;
"""


class TestGatesOf0_5_1:
    @pytest.fixture
    def files(self, tmp_path):
        return oldest_release.unpack(tmp_path / "0.5.1", "b0736173")

    @pytest.fixture
    def url(self, make_database, files):
        url = make_database(oldest_release.script(files) + ROWS_OF_0_2_0 + CLIENTS_OF_0_5_1)
        assert schema.apply(url)[0] == "0048_without_gates"
        return url

    def test_sessions_end_and_clients_go_but_not_those_of_other_applications(self, url):
        assert execute(url, "SELECT name, is_blocked FROM oauth_clients") == [("Wiki", False)]
        for table in ("oauth_grants", "oauth_requests"):
            assert execute(url, f"SELECT client_id::text FROM {table}") == [(WIKI,)]
        kept = "SELECT g.client_id::text FROM sessions AS s LEFT JOIN oauth_grants AS g ON g.id = s.grant_id ORDER BY 1"
        assert execute(url, kept) == [(WIKI,), (None,), (None,)]
