"""The role of requests: what it may do, how it is made, and who grants it what."""

from collections.abc import Callable, Iterator
from contextlib import closing
from typing import Any

import psycopg2
import pytest
from psycopg2.errors import InsufficientPrivilege
from psycopg2.extensions import make_dsn

from sql import roles, schema
from tests.support import catalog
from tests.support.databases import as_role, run
from tests.support.tables import Rows

pytest_plugins = ["tests.support.role_fixtures"]

# All tables but those that only functions of the owner write.
READ_ONLY = {"audit_log", "schema_version"}
AS_OWNER = {"record_acts_at", "record_refused", "record_import", "delete_old_entries"}
ORIGIN = '{"actor": "service"}'


@pytest.fixture
def as_requests(url_of_requests: str, database: Rows) -> Iterator[Callable[..., list[Any]]]:
    """Run statements as the role of requests."""
    with closing(psycopg2.connect(url_of_requests)) as connection:
        connection.autocommit = True

        def run_as_requests(statement: str, **parameters: Any) -> list[Any]:
            with connection.cursor() as cursor:
                cursor.execute(statement, parameters)
                return cursor.fetchall() if cursor.description else []

        yield run_as_requests


class TestPowers:
    def test_role_has_no_attribute_no_other_role_and_owns_nothing(self, as_requests):
        attributes = "rolsuper, rolcreatedb, rolcreaterole, rolreplication, rolbypassrls"
        assert as_requests(f"SELECT {attributes} FROM pg_roles WHERE rolname = current_user") == [
            (False,) * 5
        ]
        assert as_requests("SELECT rolname FROM pg_roles WHERE pg_has_role(oid, 'MEMBER')") == [("latchkey",)]
        owned_objects = "SELECT classid::regclass FROM pg_shdepend WHERE refobjid = current_user::regrole AND deptype = 'o'"
        assert as_requests(owned_objects) == []

    def test_role_writes_rows_of_all_tables_but_those_of_the_owner(self, as_requests):
        rights = ["SELECT", "INSERT", "UPDATE", "DELETE", "TRUNCATE", "REFERENCES", "TRIGGER"]
        if as_requests("SELECT current_setting('server_version_num')::integer >= 170000") == [(True,)]:
            rights.append("MAINTAIN")
        rows = as_requests(
            "SELECT c.relname, array_agg(name ORDER BY name)"
            "  FROM pg_class AS c CROSS JOIN unnest(%(rights)s) AS name"
            " WHERE c.relnamespace = 'public'::regnamespace AND c.relkind NOT IN ('i', 'c') AND has_table_privilege(c.oid, name)"
            " GROUP BY c.relname",
            rights=rights,
        )
        expected = {
            name: ["DELETE", "INSERT", "SELECT", "UPDATE"]
            for (name,) in as_requests(
                "SELECT relname FROM pg_class WHERE relnamespace = 'public'::regnamespace AND relkind NOT IN ('i', 'c')"
            )
        }
        assert dict(rows) == expected | {name: ["SELECT"] for name in READ_ONLY}
        assert expected.keys() > READ_ONLY

    @pytest.mark.parametrize(
        "statement",
        [
            "CREATE TABLE added (x integer)",
            "CREATE OR REPLACE FUNCTION iso_8601(moment timestamptz) RETURNS text LANGUAGE sql AS 'SELECT NULL::text'",
            "CREATE DATABASE added",
            "CREATE ROLE added",
            "CREATE TRIGGER added BEFORE UPDATE ON users EXECUTE FUNCTION suppress_redundant_updates_trigger()",
            "ALTER TABLE users ADD COLUMN added integer",
            "ALTER TABLE audit_log DISABLE TRIGGER ALL",
            "ALTER FUNCTION record_acts_at SECURITY INVOKER",
            "ALTER ROLE latchkey SUPERUSER",
            "DROP TABLE users",
            "TRUNCATE users",
            "TRUNCATE audit_log",
            "INSERT INTO audit_log (action, actor) VALUES ('signed_in', 'user')",
            "UPDATE audit_log SET actor = 'user'",
            "DELETE FROM audit_log",
            "SELECT FROM audit_log FOR UPDATE",
            "BEGIN; LOCK TABLE audit_log IN EXCLUSIVE MODE; COMMIT",
            "INSERT INTO schema_version (version) VALUES (0)",
            "UPDATE schema_version SET functions_digest = NULL",
            "DELETE FROM schema_version",
            "GRANT postgres TO latchkey",
            "SET ROLE postgres",
            "SET SESSION AUTHORIZATION postgres",
            "SET session_replication_role = replica",
            "SELECT FROM pg_authid",
            "SELECT pg_read_file('postgresql.conf')",
            "COPY users TO PROGRAM 'cat'",
            "ALTER SYSTEM SET fsync = off",
        ],
    )
    def test_statement_that_needs_power_is_refused(self, as_requests, database_url, statement):
        before = catalog.lines(database_url)
        with pytest.raises(InsufficientPrivilege):
            as_requests(statement)
        assert catalog.lines(database_url) == before

    def test_functions_that_run_as_the_owner_are_few_and_not_for_all_roles(self, as_requests):
        functions = as_requests(
            "SELECT proname, proconfig, has_function_privilege('pg_monitor', oid, 'EXECUTE'), pg_get_userbyid(proowner)"
            "  FROM pg_proc WHERE pronamespace = 'public'::regnamespace AND prosecdef"
        )
        assert {name for name, *_ in functions} == AS_OWNER
        assert {(tuple(path), public, owner) for _, path, public, owner in functions} == {
            (("search_path=public, pg_temp",), False, "postgres")
        }


class TestAuditLog:
    def test_temporary_table_of_the_same_name_does_not_take_an_entry(self, as_requests, database):
        as_requests(
            "CREATE TEMPORARY TABLE audit_log (LIKE public.audit_log INCLUDING DEFAULTS);"
            f"SELECT record_acts_at(now(), '{ORIGIN}', NULL, NULL, '{{signed_in}}', '{{}}', '{{}}')"
        )
        assert as_requests("SELECT count(*) FROM pg_temp.audit_log") == [(0,)]
        assert database.all("SELECT action, actor FROM audit_log") == [("signed_in", "service")]

    def test_entry_of_the_last_day_stays_whatever_is_asked(self, as_requests, database):
        database.run(
            "INSERT INTO audit_log (action, actor, at)"
            " SELECT 'signed_in', 'user', now() - age FROM unnest('{1 hour, 23 hours, 25 hours}'::interval[]) AS age"
        )
        rows = as_requests("SELECT delete_old_entries(ARRAY(SELECT id FROM audit_log))")
        assert len(rows) == 1
        assert (
            database.count("audit_log", "at > now() - interval '1 day'") == database.count("audit_log") == 2
        )

    def test_import_adds_to_no_entry_of_another_act(self, as_requests, database):
        database.run("INSERT INTO audit_log (action, actor) VALUES ('banned', 'service_role')")
        before = database.everything("audit_log")
        as_requests(f"SELECT record_import('{ORIGIN}', id, 1, 1) FROM audit_log")
        assert database.everything("audit_log") == before


NEW = ["schema.sql", "functions"]


class TestGrants:
    def test_missing_role_is_made_with_the_hash_of_its_password(self, owned, make_role, all_rows):
        owner = owned("LOGIN CREATEROLE")
        requests = as_role(owner, make_role("own_requests", None), password="correct%20horse")
        assert schema.apply(owner, requests_url=requests) == NEW
        assert schema.apply(owner, requests_url=requests) == []
        assert run(requests, "SELECT current_user::text, count(*) FROM users") == [("own_requests", 0)]
        password = "SELECT rolpassword FROM pg_authid WHERE rolname = 'own_requests'"
        assert all_rows.value(password).startswith("SCRAM-SHA-256$")
        # The owner sees the statements of requests; requests cannot become another role.
        assert run(owner, "SELECT pg_has_role('own_requests', 'USAGE')") == [(True,)]
        assert run(requests, "SELECT rolname FROM pg_roles WHERE pg_has_role(oid, 'MEMBER')") == [
            ("own_requests",)
        ]

    def test_owner_that_may_not_make_roles_says_the_statement(self, owned, make_role):
        owner = owned()
        before = catalog.lines(owner)
        with pytest.raises(psycopg2.ProgrammingError) as raised:
            schema.apply(owner, requests_url=as_role(owner, "own_requests", password="secret"))
        assert str(raised.value) == (
            "functions: there is no role own_requests, and the owner of the tables may not make it. Make it,"
            " with the password in DATABASE_URL: CREATE ROLE own_requests LOGIN ROLE own_owner PASSWORD '…'"
        )
        make_role("own_requests")
        assert schema.apply(owner, requests_url=as_role(owner, "own_requests")) == ["functions"]
        assert before == []

    def test_second_role_is_granted_the_same_and_other_tables_stay_the_operators(self, owned, make_role):
        owner = owned()
        assert schema.apply(owner) == NEW
        run(owner, "CREATE TABLE of_the_operator (x integer)")
        requests = as_role(owner, make_role("own_requests"))
        assert schema.apply(owner, requests_url=requests) == [roles.GRANTS.name]
        assert run(requests, "UPDATE users SET role = 'admin' RETURNING id") == []
        for statement in (
            "SELECT FROM of_the_operator",
            "DELETE FROM audit_log",
            "CREATE TABLE x (y integer)",
        ):
            with pytest.raises(InsufficientPrivilege):
                run(requests, statement)

    def test_owner_keeps_its_powers_when_it_serves_requests(self, owned):
        owner = owned()
        assert schema.apply(owner, requests_url=make_dsn(owner, application_name="same")) == NEW
        assert schema.apply(owner, requests_url=owner) == []
        assert run(owner, "DELETE FROM audit_log; TRUNCATE users CASCADE; SELECT 1") == [(1,)]

    def test_role_without_power_says_who_must_change_the_schema(self, owned, make_role):
        owner = owned()
        requests = as_role(owner, make_role("own_requests"))
        schema.apply(owner, requests_url=requests)
        # A service starts without the owner if no step is pending.
        assert schema.apply(requests) == []
        run(owner, "UPDATE schema_version SET functions_digest = NULL")
        with pytest.raises(psycopg2.ProgrammingError) as raised:
            schema.apply(requests)
        assert str(raised.value) == (
            "functions: permission denied for schema public. If another role owns the tables, run latchkey migrate with"
            " its URL in AUTH_DATABASE_OWNER_URL. Else let the owner of the database run: GRANT USAGE, CREATE ON SCHEMA"
            " public TO own_requests"
        )


CREATE_IN = "GRANT USAGE, CREATE ON SCHEMA {} TO own_requests"


@pytest.mark.parametrize(
    ("new_schema", "path", "problem", "remedy"),
    [
        ("elsewhere", "elsewhere", "no schema has been selected to create in", CREATE_IN.format("elsewhere")),
        (
            "elsewhere",
            "none, elsewhere, public",
            "permission denied for schema public",
            CREATE_IN.format("elsewhere"),
        ),
        ('"Of us"', '"Of us"', "no schema has been selected to create in", CREATE_IN.format('"Of us"')),
        (
            "other",
            "elsewhere",
            "no schema has been selected to create in",
            "CREATE SCHEMA elsewhere; " + CREATE_IN.format("elsewhere"),
        ),
        (
            "own_requests",
            '"$user", public',
            "permission denied for schema public",
            CREATE_IN.format("own_requests"),
        ),
        ("other", '"$user", public', "permission denied for schema public", CREATE_IN.format("public")),
    ],
)
def test_role_that_may_not_create_tables_is_given_the_statement_for_its_schema(
    owned, make_role, all_rows, new_schema, path, problem, remedy
):
    owner = owned()
    requests = as_role(owner, make_role("own_requests"))
    run(owner, f"CREATE SCHEMA {new_schema}; SELECT 1")
    all_rows.run(f"ALTER ROLE own_requests SET search_path = {path}")
    with pytest.raises(psycopg2.ProgrammingError) as raised:
        schema.apply(requests)
    assert str(raised.value) == f"schema.sql: {problem}. Let the owner of the database run: {remedy}"
    run(owner, f"{remedy}; SELECT 1")
    assert schema.apply(requests) == NEW
