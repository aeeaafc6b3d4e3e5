"""The schema: created in a new database, and upgraded in the database of an earlier release."""

import re
import uuid
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from itertools import chain
from typing import Any
from urllib.parse import urlsplit

import psycopg2
import pytest
from psycopg2.errors import InsufficientPrivilege

from auth import __version__
from sql import Database, queries, roles, schema
from tests.support import catalog
from tests.support.cases import cases
from tests.support.databases import as_role
from tests.support.processes import wait_until
from tests.support.server import at_once
from tests.support.tables import Rows

pytest_plugins = ["tests.support.role_fixtures"]

NEW = ["schema.sql", "functions"]
# Refuses each step that runs within a time limit.
_REFUSES_LIMIT = """
CREATE SCHEMA operator;
CREATE FUNCTION operator.refuse() RETURNS event_trigger LANGUAGE plpgsql AS $$
BEGIN
  IF current_setting('LIMIT') <> '0' THEN RAISE EXCEPTION 'LIMIT is %', current_setting('LIMIT'); END IF;
END $$;
CREATE EVENT TRIGGER refuse ON ddl_command_start EXECUTE FUNCTION operator.refuse();
"""
RECORD_SIGN_IN = (
    """SELECT record_acts_at(now(), '{"actor": "service"}', NULL, NULL, '{signed_in}', '{}', '{}')"""
)


@pytest.fixture
def migrations(monkeypatch, tmp_path):
    """Add migrations with these texts to those of the release."""

    def add(*texts: str) -> None:
        paths = {}
        for number, text in enumerate(texts, schema.NEWEST + 1):
            paths[number] = tmp_path / f"{number:04}_adds.sql"
            paths[number].write_text(text)
        monkeypatch.setattr(schema, "MIGRATIONS", schema.MIGRATIONS | paths)
        monkeypatch.setattr(schema, "NEWEST", max(schema.MIGRATIONS))

    return add


@pytest.fixture
def newer(monkeypatch, migrations):
    """Have the newer release that this one is usable with apply its schema; then this one goes on."""
    own_values = {name: getattr(schema, name) for name in ("MIGRATIONS", "NEWEST")}

    def apply(url: str) -> None:
        schema.apply(url)
        migrations(f"-- Usable from {schema.NEWEST:04}\nCREATE TABLE added (x integer)")
        schema.apply(url)
        newest = "SELECT version, usable_from FROM schema_version ORDER BY version DESC LIMIT 1"
        assert execute(url, newest) == [(schema.NEWEST, own_values["NEWEST"])]
        for name, value in own_values.items():
            monkeypatch.setattr(schema, name, value)
        execute(url, "UPDATE schema_version SET functions_digest = 'another'")

    return apply


def execute(url, statement, parameters=None):
    with closing(psycopg2.connect(url)) as connection, connection, connection.cursor() as cursor:
        cursor.execute(statement, parameters)
        return cursor.fetchall() if cursor.description else None


def assert_refused(url, message):
    """Check that the schema of a database is refused and left unchanged."""
    before = catalog.lines(url)
    with pytest.raises(psycopg2.ProgrammingError, match=message):
        schema.apply(url)
    assert catalog.lines(url) == before


class TestNewDatabase:
    def test_concurrent_starts_create_the_newest_schema_once(self, new_database):
        url = new_database()
        steps = chain.from_iterable(at_once(6, lambda _: schema.apply(url)))
        # A new database needs neither migrations nor an extension.
        assert sorted(steps) == sorted(NEW)
        assert execute(url, "SELECT version FROM schema_version") == [(schema.NEWEST,)]
        assert execute(url, "SELECT extname FROM pg_extension") == [("plpgsql",)]
        assert schema.apply(url) == []

    @pytest.mark.parametrize(
        "name", ["statement_timeout", "transaction_timeout", "idle_in_transaction_session_timeout"]
    )
    def test_time_limit_of_the_database_or_role_is_lifted_for_each_step(self, new_database, name):
        url = new_database()
        if not execute(url, "SELECT 1 FROM pg_settings WHERE name = %s", (name,)):
            pytest.skip(f"this Postgres has no {name}")
        execute(url, f"ALTER DATABASE {urlsplit(url).path[1:]} SET {name} = '1min'")
        execute(url, _REFUSES_LIMIT.replace("LIMIT", name))
        assert schema.apply(url) == NEW
        assert schema.pending(url) == []

    def test_database_of_another_application_is_refused_and_unchanged(self, new_database):
        url = new_database()
        execute(url, "CREATE TABLE users (id integer)")
        assert_refused(url, "another application")


def test_columns_that_0_7_needs_to_say_what_others_misstate_go_with_0_9_0():
    """docs/releasing.md: nodes of 0.7.x write them, and no node of 0.7.x runs beside one of 0.9.0."""
    if tuple(map(int, __version__.split(".")[:2])) >= (0, 9):
        assert re.findall(r"\badmits_members\b|\bis_on\b", schema.SCHEMA.read_text()) == []


class TestFunctions:
    def test_changed_functions_are_replaced(self, database, database_url, alice):
        database.run(
            "CREATE OR REPLACE FUNCTION iso_8601(moment timestamptz) RETURNS text LANGUAGE sql AS 'SELECT NULL::text'"
        )
        database.outdate_functions()
        assert schema.apply(database_url) == ["functions"]
        assert database.value("SELECT iso_8601('2026-11-21T12:00:00Z')") == "2026-11-21T12:00:00.000000Z"
        assert database.count("users") == 1

    def test_functions_have_valid_bodies(self, new_database):
        # Postgres creates them without checking their bodies; creating them again checks them, and takes the search
        # path from those that run as their owner.
        url = new_database()
        schema.apply(url)
        for path in schema.FUNCTIONS.glob("*.sql"):
            execute(url, path.read_text())


NEWER = schema.NEWEST + 1
UPGRADE_FIRST = rf"\d+, from before 0\.7\.0\. Upgrade it to 0\.7\.1 \(commit {schema.BRIDGE_COMMIT}\) first: "


class TestMigrations:
    @pytest.fixture
    def url(self, new_database):
        url = new_database()
        schema.apply(url)
        return url

    def test_migrations_are_numbered_without_gaps(self):
        assert list(schema.MIGRATIONS) == list(range(schema.OLDEST + 1, schema.NEWEST + 1))

    def test_migrations_run_in_order_and_once(self, url, migrations):
        migrations("CREATE TABLE added (x integer)", "INSERT INTO added VALUES (1)")
        steps = chain.from_iterable(at_once(4, lambda _: schema.apply(url)))
        stems = [schema.MIGRATIONS[version].stem for version in (schema.NEWEST - 1, schema.NEWEST)]
        assert sorted(steps) == [*stems, "functions"]
        assert execute(url, "SELECT x FROM added") == [(1,)]

    def test_failed_migrations_change_nothing(self, url, migrations):
        migrations("CREATE TABLE added (x integer); INSERT INTO added VALUES ('nonsense')")
        assert_refused(url, r"^\d{4}_adds: .*nonsense")
        assert execute(url, "SELECT max(version) FROM schema_version") == [(schema.NEWEST - 1,)]

    @cases("table", ["users", "identities"])
    def test_sign_up_whose_statement_waits_for_a_new_column_is_made(self, url, table):
        user_id = str(uuid.uuid4())
        columns: dict[str, Any] = dict.fromkeys(("phone", "password_hash", "user_agent"))
        columns |= {
            "user_id": user_id,
            "email": f"{table}@example.com",
            "user_metadata": {},
            "is_confirmed": False,
        }
        with (
            closing(Database(url, constants={"audience": "authenticated"})) as db,
            closing(Rows(url)) as rows,
            closing(psycopg2.connect(url)) as migration,
            ThreadPoolExecutor() as threads,
        ):
            with db.pool.connection() as connection, connection.cursor() as cursor:
                # Postgres then knows the type, and needs no lock on the table to look it up.
                cursor.execute(f"SELECT (made).* FROM jsonb_populate_record(NULL::{table}, '{{}}') AS made")
            migration.cursor().execute(f"ALTER TABLE {table} ADD added text")
            signed_up = threads.submit(queries.insert_sign_up, db, **columns)
            wait_until(rows.waiting)
            migration.commit()
            assert signed_up.result().is_created
            assert rows.count("identities", "user_id = %(id)s", id=user_id) == 1

    def test_schema_that_this_release_can_use_is_left_as_it_is(self, url, newer):
        newer(url)
        assert schema.pending(url) == schema.apply(url) == []

    def test_restored_schema_that_this_release_can_use_gets_its_grants(self, owned, make_role, newer):
        owner = owned(name="restoring_owner")
        # A backup has no grants, so there is no role of requests yet.
        newer(owner)
        # A newer release may drop these, which this one kept for the release before.
        execute(owner, "DROP TABLE probes; DROP FUNCTION record_import")
        requests = as_role(owner, make_role("restoring_requests"))
        before = catalog.lines(owner)
        assert schema.pending(owner, requests) == [roles.GRANTS.name]
        assert schema.apply(owner, requests_url=requests) == [roles.GRANTS.name]
        assert schema.pending(owner, requests) == []
        execute(requests, "DELETE FROM users; " + RECORD_SIGN_IN)
        for statement in ("DELETE FROM audit_log", "SELECT FROM added"):
            with pytest.raises(InsufficientPrivilege):
                execute(requests, statement)
        assert catalog.lines(owner) == before

    def test_each_migration_says_which_releases_can_use_the_schema_so_far(self, url, migrations):
        header = f"-- Usable from {schema.NEWEST:04}\n"
        expected = [(schema.NEWEST + 1, schema.NEWEST), (schema.NEWEST + 2, schema.NEWEST)]
        migrations(f"{header}CREATE TABLE added (x integer)", f"{header}SELECT", f"{header}nonsense")
        # An upgrade that stops halfway leaves the previous release a way back, and a backup, too.
        with pytest.raises(psycopg2.ProgrammingError, match="nonsense"):
            schema.apply(url)
        rows = "SELECT version, usable_from FROM schema_version ORDER BY version"
        assert execute(url, rows)[1:] == expected
        schema.MIGRATIONS[schema.NEWEST].write_text("SELECT")
        schema.apply(url)
        assert execute(url, rows)[1:] == [*expected, (schema.NEWEST, schema.NEWEST)]

    @pytest.mark.parametrize(
        ("statement", "message"),
        [
            (f"INSERT INTO schema_version (version) VALUES ({NEWER})", f"{NEWER}, but this release knows"),
            (f"UPDATE schema_version SET version = {schema.OLDEST - 1}", UPGRADE_FIRST),
        ],
        ids=["newer", "older"],
    )
    def test_schema_of_another_release_is_refused(self, url, statement, message):
        execute(url, statement)
        assert_refused(url, f"^the schema has version {message}")
