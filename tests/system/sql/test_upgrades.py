"""Databases of earlier releases, and their nodes next to new ones."""

from contextlib import ExitStack, closing
from functools import partial
from hashlib import sha256

import psycopg2
import pytest

from auth.core.tokens import api_keys
from auth.web.context import EXTENSION
from sql import load_statements, queries, schema
from tests.sql.test_schema import ALICE, ROWS_OF_0_2_0, SESSION, TOKEN_OF_0_2_0, execute
from tests.support import catalog, oldest_release
from tests.support.api_keys import use
from tests.support.apps import new_app
from tests.support.databases import new_databases
from tests.support.links import hand_in
from tests.support.tables import Rows
from tests.support.users import refresh, session_of, sign_in

# The code of 0.2.0 made the password's hash and, with this secret, the refresh token.
SECRET_OF_0_2_0 = "k3Jh8sPq0Zx7Vn2Lw9Tb4Rm6Yc1Gf5Da"
REFRESH_TOKEN_OF_0_2_0 = "vWggxYowT2KovUmkzYaKqAAAAAAAAAAA3ZEN6toxhRmr-rQkkMNeJbRO"
COUNTS_OF_0_2_0 = """
INSERT INTO failure_counts (key, count, expires_at)
SELECT key, 1, now() + interval '1 hour'
  FROM unnest('{mail 3600,message a@example.com 3600,message a@example.com ::1 60,login a@example.com ::1}'::text[]) AS key;
"""
KEYS_OF_0_3_0 = f"""
INSERT INTO api_keys (id, user_id, name, key_mac, scopes, created_at)
SELECT gen_random_uuid(), f.user_id, name, '', '{{}}', f.verified_at + age
  FROM factors AS f
 CROSS JOIN (VALUES ('older', interval '-1 second'), ('younger', interval '1 second')) AS known (name, age);
INSERT INTO api_keys (id, user_id, name, key_mac, scopes) VALUES (gen_random_uuid(), '{ALICE}', 'no factor', '', '{{}}');
"""


@pytest.fixture(scope="module")
def make_database(all_rows, database_url):
    with new_databases(all_rows, database_url) as make:
        yield make


@pytest.fixture(scope="module")
def upgraded(make_database, oldest_release_files):
    """The URL of an upgraded database of the oldest release."""
    url = make_database(oldest_release.script(oldest_release_files) + ROWS_OF_0_2_0 + COUNTS_OF_0_2_0)
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


@pytest.fixture(scope="module")
def upgraded_from_0_3_0(make_database, tmp_path_factory):
    """The URL of an upgraded database of 0.3.0 with API keys."""
    files = oldest_release.unpack(tmp_path_factory.mktemp("0.3.0"), "e02656db")
    url = make_database(oldest_release.script(files) + ROWS_OF_0_2_0 + KEYS_OF_0_3_0)
    assert schema.apply(url)[-1] == "functions"
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

    def test_counts_have_columns_after_the_upgrade(self, upgraded):
        columns = 'SELECT kind, subject, network, seconds FROM failure_counts ORDER BY key COLLATE "C"'
        assert execute(upgraded, columns) == [
            ("login", "a@example.com", "::1", None),
            ("mail", None, None, 3600),
            ("message", "a@example.com", None, 3600),
            ("message", "a@example.com", "::1", 60),
        ]

    def test_networks_that_passed_and_first_factors_are_known_after_the_upgrade(self, upgraded):
        passed = "SELECT network FROM known_networks WHERE passed_at IS NOT NULL"
        # Erin passed there with her factor; Alice, without one, wherever she signed in.
        assert sorted(execute(upgraded, passed)) == [("127.0.0.1",), ("192.0.2.2",)]
        first = "SELECT u.email FROM users AS u JOIN factors AS f ON f.user_id = u.id AND f.verified_at = u.first_factor_at"
        assert execute(upgraded, first) == [("erin@example.com",)]


class TestApiKeysOf0_3_0:
    """Keys that a node of 0.3.0 made before the upgrade."""

    def test_schema_equals_a_new_one(self, upgraded_from_0_3_0, created):
        assert catalog.lines(upgraded_from_0_3_0) == catalog.lines(created)

    def test_key_that_is_younger_than_a_factor_has_its_level(self, upgraded_from_0_3_0):
        levels = "SELECT k.name, k.aal FROM api_keys AS k ORDER BY k.name"
        assert execute(upgraded_from_0_3_0, levels) == [
            ("no factor", "aal1"),
            ("older", "aal1"),
            ("younger", "aal2"),
        ]

    def test_key_works_where_no_level_is_demanded(self, environment, upgraded_from_0_3_0):
        app = new_app({**environment, "DATABASE_URL": upgraded_from_0_3_0, "AUTH_API_KEYS": "true"})
        parts, client = app.extensions[EXTENSION], app.test_client()
        keys = {}
        for name in ("no factor", "older", "younger"):
            id, keys[name] = api_keys.new_key()
            columns = {"id": id, "mac": parts.api_keys.macs(keys[name])[0], "name": name}
            execute(
                upgraded_from_0_3_0,
                "UPDATE api_keys SET id = %(id)s, key_mac = %(mac)s WHERE name = %(name)s",
                columns,
            )
        answers = {name: use(client, key) for name, key in keys.items()}
        parts.db.close()
        assert {name: answer.json.get("error_code") for name, answer in answers.items()} == {
            "no factor": None,
            "older": "insufficient_aal",
            "younger": None,
        }


class TestNodesOfTwoReleases:
    """Nodes of 0.4.0 serve until they are restarted: docs/deployment.md."""

    @pytest.fixture
    def run(self, url, files_of_0_4_0):
        """Run a statement of 0.4.0, on one connection to a database of 0.4.0."""
        statements = load_statements(files_of_0_4_0 / "sql")
        with closing(psycopg2.connect(url)) as connection:

            def run(name, **parameters):
                with connection, connection.cursor() as cursor:
                    statement = statements[name]
                    cursor.execute(statement.direct, dict.fromkeys(statement.parameters) | parameters)
                    return cursor.fetchall()

            yield run

    @pytest.fixture
    def url(self, make_database, files_of_0_4_0):
        return make_database(oldest_release.script(files_of_0_4_0) + ROWS_OF_0_2_0)

    def test_link_that_waits_while_functions_are_replaced_works(self, url, run):
        token = sha256(TOKEN_OF_0_2_0.encode()).digest()
        spend = partial(run, "spend_one_time_token", token_hash=token, code_macs=[], purposes=["magiclink"])
        waiting = []
        with closing(Rows(url)) as rows, ExitStack() as stack:

            def spend_before_the_last_step(_):
                if schema.pending(url) == ["functions"]:
                    waiting.append(stack.enter_context(rows.locked("users", ALICE)).start(spend))

            schema.apply(url, spend_before_the_last_step)
        assert [len(spent.result()) for spent in waiting] == [1]

    def test_statements_of_0_4_0_work_after_each_step_and_count_together(self, url, run, files_of_0_4_0):
        statements = load_statements(files_of_0_4_0 / "sql")
        sent = {
            "email": "alice@example.com",
            "network": "192.0.2.1",
            "password_failures": [99, 3600, 99, 3600],
        }
        tries = []

        def use(_):
            for statement in statements.values():
                execute(url, statement.prepare(), {})
            ((count, *_),) = run("record_password_verdict", **sent, is_right=False)
            tries.append(count)
            assert run("select_password", **sent)[0][2] is None

        use(None)
        steps = schema.apply(url, use)
        assert tries == list(range(1, len(steps) + 2))


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

    def test_sessions_end_and_clients_are_blocked_but_not_those_of_other_applications(self, url):
        assert execute(url, "SELECT name, is_blocked FROM oauth_clients ORDER BY name") == [
            ("Docs", True),
            ("Wiki", False),
        ]
        for table in ("oauth_grants", "oauth_requests"):
            assert execute(url, f"SELECT client_id::text FROM {table}") == [(WIKI,)]
        kept = "SELECT g.client_id::text FROM sessions AS s LEFT JOIN oauth_grants AS g ON g.id = s.grant_id ORDER BY 1"
        assert execute(url, kept) == [(WIKI,), (None,), (None,)]

    def test_clients_are_shown_nowhere(self, url, environment):
        app = new_app({**environment, "DATABASE_URL": url})
        client, key = app.test_client(), {"Authorization": f"Bearer {environment['AUTH_SERVICE_ROLE_KEY']}"}
        listed = client.get("/admin/oauth/clients", headers=key)
        console = queries.search_clients(
            app.extensions[EXTENSION].db, counted=9, searched=9, before_at=None, before_id=None, most=9
        )
        one = [client.get(f"/admin/oauth/clients/{id}", headers=key).status_code for id in (GATE, WIKI)]
        unblocked = client.put(f"/admin/oauth/clients/{GATE}", json={"is_blocked": False}, headers=key)
        app.extensions[EXTENSION].db.close()
        names = [each["client_name"] for each in listed.json["clients"]]
        assert (names, listed.headers["X-Total-Count"], one) == (["Wiki"], "1", [404, 200])
        assert [row.details["name"] for row in console] == ["Wiki"]
        assert (
            unblocked.status_code,
            execute(url, "SELECT count(*) FROM oauth_clients WHERE is_blocked"),
        ) == (404, [(1,)])
