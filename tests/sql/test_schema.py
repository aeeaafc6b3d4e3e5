"""The schema: created in a new database, and upgraded in the database of an earlier release."""

import re
from contextlib import closing
from itertools import chain
from typing import NamedTuple

import psycopg2
import pytest

from auth.context import EXTENSION
from sql import schema
from tests.conftest import new_app, new_databases
from tests.support import catalog
from tests.support.cases import cases
from tests.support.cast import refresh, session_of, sign_in
from tests.support.dump import SCHEMAS
from tests.support.server import at_once

NEW = ["schema.sql", "functions"]
# Of the session in the database of 0.1.0, made by its code.
SECRET_OF_0_1_0 = "k3Jh8sPq0Zx7Vn2Lw9Tb4Rm6Yc1Gf5Da"
REFRESH_TOKEN_OF_0_1_0 = "G82RUy2TTH2MxBPqzpjCBwAAAAAAAAAAFyH7Zbz6lx2DJ5O-ujzyEJdY"


@pytest.fixture
def migrations(monkeypatch, tmp_path):
    """Add migrations with these texts to those of the release."""

    def add(*texts: str) -> None:
        added = {}
        for number, text in enumerate(texts, schema.NEWEST + 1):
            added[number] = tmp_path / f"{number:04}_adds.sql"
            added[number].write_text(text)
        monkeypatch.setattr(schema, "MIGRATIONS", schema.MIGRATIONS | added)
        monkeypatch.setattr(schema, "NEWEST", max(schema.MIGRATIONS))

    return add


def execute(url, statement):
    with closing(psycopg2.connect(url)) as connection, connection, connection.cursor() as cursor:
        cursor.execute(statement)
        return cursor.fetchall() if cursor.description else None


class TestNewDatabase:
    def test_new_database_gets_the_newest_version_without_migrations(self, new_database):
        url = new_database()
        assert schema.apply(url) == NEW
        assert execute(url, "SELECT version FROM schema_version") == [(schema.NEWEST,)]

    def test_current_schema_is_left_unchanged(self, database_url, database):
        assert schema.apply(database_url) == []

    def test_concurrent_starts_create_the_schema_once(self, new_database):
        url = new_database()
        steps = chain.from_iterable(at_once(6, lambda _: schema.apply(url)))
        assert sorted(steps) == sorted(NEW)

    def test_schema_needs_no_extension(self, database):
        assert database.value("SELECT count(*) FROM pg_extension WHERE extname <> 'plpgsql'") == 0

    def test_database_of_another_application_is_refused_and_unchanged(self, new_database):
        url = new_database()
        execute(url, "CREATE TABLE users (id integer)")
        before = catalog.lines(url)
        with pytest.raises(psycopg2.ProgrammingError, match="another application"):
            schema.apply(url)
        assert catalog.lines(url) == before


class TestFunctions:
    def test_changed_functions_are_replaced(self, database, database_url, alice):
        database.run(
            "CREATE OR REPLACE FUNCTION iso_8601(moment timestamptz) RETURNS text LANGUAGE sql AS 'SELECT NULL::text'"
        )
        database.outdate_functions()
        assert schema.apply(database_url) == ["functions"]
        assert database.value("SELECT iso_8601('2026-11-21T12:00:00Z')") == "2026-11-21T12:00:00.000000Z"
        assert database.count("users") == 1

    def test_functions_have_valid_bodies(self, database_url, database):
        # Postgres creates them without checking their bodies; creating them again checks them.
        for path in schema.FUNCTIONS.glob("*.sql"):
            execute(database_url, path.read_text())


class TestMigrations:
    def test_migrations_are_numbered_without_gaps(self):
        assert list(schema.MIGRATIONS) == list(range(schema.OLDEST + 1, schema.NEWEST + 1))

    def test_migrations_run_in_order_and_once(self, new_database, migrations):
        url = new_database()
        schema.apply(url)
        migrations("CREATE TABLE added (x integer)", "INSERT INTO added VALUES (1)")
        steps = chain.from_iterable(at_once(4, lambda _: schema.apply(url)))
        added = [schema.MIGRATIONS[version].stem for version in (schema.NEWEST - 1, schema.NEWEST)]
        assert sorted(steps) == [*added, "functions"]
        assert execute(url, "SELECT x FROM added") == [(1,)]

    def test_failed_migrations_change_nothing(self, new_database, migrations):
        url = new_database()
        schema.apply(url)
        before = catalog.lines(url)
        migrations("CREATE TABLE added (x integer); INSERT INTO added VALUES ('nonsense')")
        with pytest.raises(psycopg2.ProgrammingError, match=r"^\d{4}_adds: .*nonsense"):
            schema.apply(url)
        assert catalog.lines(url) == before
        assert execute(url, "SELECT max(version) FROM schema_version") == [(schema.NEWEST - 1,)]

    @pytest.fixture
    def url(self, new_database):
        url = new_database()
        schema.apply(url)
        return url

    @cases("version", [schema.NEWEST + 1, schema.OLDEST - 1])
    def test_unknown_schema_version_is_refused(self, url, version):
        execute(url, f"DELETE FROM schema_version; INSERT INTO schema_version (version) VALUES ({version})")
        expected = f"the schema has version {version}, but this release works with {schema.OLDEST} to {schema.NEWEST}"
        with pytest.raises(psycopg2.ProgrammingError, match=f"^{expected}$"):
            schema.apply(url)


def test_every_released_version_has_a_dump():
    changelog = (schema.SCHEMA.parent / "CHANGELOG.md").read_text()
    released = re.findall(r"^## ([0-9.]+)\b", changelog, re.MULTILINE)
    assert "0.1.0" in released
    assert set(released) <= {path.stem for path in SCHEMAS.glob("*.sql")}


class Upgraded(NamedTuple):
    """The database of an earlier version, and the steps that upgraded it."""

    url: str
    steps: list[str]


@pytest.fixture(scope="module")
def make_database(all_rows, database_url):
    with new_databases(all_rows, database_url) as make:
        yield make


@pytest.fixture(scope="module")
def fresh_lines(make_database):
    url = make_database()
    schema.apply(url)
    return catalog.lines(url)


@pytest.fixture(scope="module", params=sorted(SCHEMAS.glob("*.sql")), ids=lambda path: path.stem)
def upgraded(request, make_database):
    url = make_database(request.param)
    if request.param.stem == "0.1.0":
        execute(
            url,
            "INSERT INTO audit_log (action, actor, details)"
            " VALUES ('webhook_created', 'service', '{\"url\": \"https://app.example.com/hooks?key=x\"}')",
        )
    return Upgraded(url, schema.apply(url))


class TestUpgrade:
    def test_upgraded_schema_equals_a_new_one(self, upgraded, fresh_lines):
        assert catalog.lines(upgraded.url) == fresh_lines

    def test_upgrade_keeps_users(self, environment, upgraded):
        app = new_app({**environment, "DATABASE_URL": upgraded.url})
        client = app.test_client()
        session = session_of(client, sign_in(client, "alice@example.com"))
        assert session.get("/user").json["email"] == "alice@example.com"
        assert session.put("/user", json={"data": {"x": 1}}).json["user_metadata"] == {"x": 1}
        app.extensions[EXTENSION].db.close()

    def test_release_with_other_functions_has_another_version(self, upgraded):
        """Otherwise the earlier release would restore its own functions."""
        hint = "unless that version is tagged, write its dump again: python -m tests.support.dump"
        assert upgraded.steps[:1] != ["functions"], hint

    @pytest.mark.parametrize("upgraded", [SCHEMAS / "0.1.0.sql"], ids=["0.1.0"], indirect=True)
    def test_refresh_token_of_0_1_0_is_refreshed_after_the_upgrade(self, environment, upgraded):
        execute(upgraded.url, "UPDATE sessions SET refreshed_at = now(), created_at = now()")
        app = new_app({**environment, "DATABASE_URL": upgraded.url, "AUTH_SECRET_KEY": SECRET_OF_0_1_0})
        client = app.test_client()
        session = session_of(client, refresh(client, REFRESH_TOKEN_OF_0_1_0))
        assert session.get("/user").json["email"] == "alice@example.com"
        app.extensions[EXTENSION].db.close()

    @pytest.mark.parametrize("upgraded", [SCHEMAS / "0.2.0.sql"], ids=["0.2.0"], indirect=True)
    def test_networks_of_sessions_at_aal2_count_as_passed_after_the_upgrade(self, upgraded):
        passed = "SELECT user_id, network FROM known_networks WHERE passed_at IS NOT NULL ORDER BY user_id"
        raised = "SELECT DISTINCT user_id, host(ip) FROM sessions WHERE aal = 'aal2' ORDER BY user_id"
        assert execute(upgraded.url, passed) == execute(upgraded.url, raised) != []

    @pytest.mark.parametrize("upgraded", [SCHEMAS / "0.1.0.sql"], ids=["0.1.0"], indirect=True)
    def test_upgrade_of_0_1_0_leaves_the_origins_of_webhooks_in_the_audit_log(self, upgraded):
        urls = execute(upgraded.url, "SELECT details ->> 'url' FROM audit_log WHERE details ? 'url'")
        assert {url for (url,) in urls} - {"https://192.0.1.1"} == {"https://app.example.com"}
