"""Writes with an empty search path, like those of pg_restore and of careful operators, in any schema."""

import subprocess
import uuid
from collections.abc import Iterator
from contextlib import closing

import psycopg2
import pytest
from psycopg2 import sql as composed

from auth.ops.processes import embedded_postgres
from sql import schema
from tests.support.databases import as_role, run

USER, CLIENT, GRANT = (str(uuid.uuid4()) for _ in range(3))
ROWS = f"""
INSERT INTO users (id, email, made_by) VALUES ('{USER}', 'alice@example.com', 'signup');
INSERT INTO users (made_by) VALUES ('anonymous');
INSERT INTO identities (user_id, provider, subject, identity_data)
VALUES ('{USER}', 'email', '{USER}', '{{"sub": "{USER}", "email": "alice@example.com"}}');
INSERT INTO factors (id, user_id, factor_type, secret, verified_at)
VALUES (gen_random_uuid(), '{USER}', 'totp', '', now());
INSERT INTO oauth_clients (id, token_endpoint_auth_method, redirect_uris, grant_types, backchannel_logout_uri)
VALUES ('{CLIENT}', 'none', '{{https://wiki.example.com}}', '{{authorization_code}}', 'https://wiki.example.com/logout');
INSERT INTO oauth_grants (id, user_id, client_id, scopes) VALUES ('{GRANT}', '{USER}', '{CLIENT}', '{{openid}}');
INSERT INTO sessions (user_id, method, ip, grant_id, scopes)
SELECT '{USER}', 'password', '192.0.2.1', '{GRANT}', '{{openid}}' FROM generate_series(1, 3);
INSERT INTO outbox (id, channel, kind, recipient) VALUES (gen_random_uuid(), 'email', 'magiclink', 'a@example.com');
"""
# Each statement fires triggers, and qualifies its tables by their schema, as pg_dump does.
WRITES = """
UPDATE {schema}.users SET email_confirmed_at = pg_catalog.now() WHERE made_by = 'anonymous';
UPDATE {schema}.sessions SET ended_at = pg_catalog.now(), end_reason = 'ended_by_admin'
 WHERE id = (SELECT s.id FROM {schema}.sessions AS s LIMIT 1);
DELETE FROM {schema}.factors;
DELETE FROM {schema}.users;
DELETE FROM {schema}.oauth_clients;
"""


@pytest.fixture(params=["public", "Own schema"])
def schema_and_url(request, new_database, database) -> Iterator[tuple[str, str]]:
    """The name of a schema, and the URL of a role whose search path names it."""
    whole, name = new_database(), f"looks_{uuid.uuid4().hex}"
    run(whole, f"CREATE ROLE {name} LOGIN SUPERUSER PASSWORD 'own'")
    run(whole, f'ALTER ROLE {name} SET search_path = "{request.param}"')
    run(whole, f'CREATE SCHEMA IF NOT EXISTS "{request.param}"')
    url = as_role(whole, name, password="own")
    schema.apply(url)
    yield request.param, url
    run(whole, f"REASSIGN OWNED BY {name} TO current_user; DROP ROLE {name}")


def test_triggers_of_an_operators_writes_find_their_tables(schema_and_url):
    name, url = schema_and_url
    run(url, ROWS)
    with closing(psycopg2.connect(url)) as connection, connection, connection.cursor() as cursor:
        cursor.execute("SET search_path = ''")
        cursor.execute(composed.SQL(WRITES).format(schema=composed.Identifier(name)))
    rows = run(url, "SELECT channel, variables ->> 'client_id' FROM outbox WHERE channel = 'logout'")
    # One row for each session: an ended one, and two of a deleted user.
    assert rows == [("logout", CLIENT)] * 3


def test_data_is_restored_by_pg_restore(schema_and_url, new_database, tmp_path):
    name, url = schema_and_url
    run(url, ROWS)
    programs = embedded_postgres.find_programs()
    file, tables = (
        tmp_path / "data",
        ("users", "identities", "factors", "oauth_clients", "oauth_grants", "sessions", "outbox"),
    )
    counts = "SELECT " + ", ".join(f"(SELECT count(*) FROM {table})" for table in tables)
    before = run(url, counts)
    table_options = [f'--table="{name}".{table}' for table in tables]
    subprocess.run(
        [
            str(programs / "pg_dump"),
            "--data-only",
            "--format=custom",
            f"--file={file}",
            *table_options,
            url,
        ],
        check=True,
    )
    run(url, "DELETE FROM users; DELETE FROM oauth_clients; DELETE FROM outbox")
    command = [str(programs / "pg_restore"), "--file=-", str(file)]
    script = subprocess.run(command, capture_output=True, check=True).stdout
    # Servers before 17 do not know this setting.
    script = script.replace(b"SET transaction_timeout = 0;\n", b"")
    command = [str(programs / "psql"), "--quiet", "--set=ON_ERROR_STOP=1", url]
    subprocess.run(command, input=script, stdout=subprocess.DEVNULL, check=True)
    assert run(url, counts) == before
