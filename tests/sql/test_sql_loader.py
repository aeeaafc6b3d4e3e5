"""The data-access module: statements named in files, prepared on each connection, run with named parameters."""

from collections.abc import Callable
from contextlib import closing

import psycopg2
import pytest

from sql import Database, InvalidStatement, load_statements, queries
from tests.support.answers import NO_ID, assert_error
from tests.support.cases import cases
from tests.support.timeouts import SERVICE_TIMEOUTS
from tests.support.users import PASSWORD, session_of, sign_in

GOOD = """-- name: add(left integer, right integer)
-- Adds two numbers.
SELECT :left + :right AS sum;
"""


@pytest.fixture
def statements(tmp_path):
    """Load the statements of a file with this text."""

    def load(text, *others):
        for number, content in enumerate((text, *others)):
            (tmp_path / f"file{number}.sql").write_text(content)
        return load_statements(tmp_path)

    return load


@pytest.fixture
def open_db(database_url, database):
    databases = []

    def make(**options):
        databases.append(Database(database_url, **{"size": 2, **options}))
        return databases[-1]

    yield make
    for each in databases:
        each.close()


class TestFiles:
    def test_header_becomes_the_signature(self, statements):
        add = statements(GOOD)["add"]
        assert dict(add.parameters) == {"left": "integer", "right": "integer"}
        assert add.prepare() == "PREPARE add (integer, integer) AS SELECT $1 + $2 AS sum"
        assert add.execute() == "EXECUTE add (%(left)s, %(right)s)"
        assert add.direct == "SELECT (%(left)s)::integer + (%(right)s)::integer AS sum"

    def test_title_of_the_next_section_is_no_part_of_a_statement(self, statements):
        next_section = "\n-- Of the next section.\n\n-- More.\n"
        found = statements(GOOD + next_section + GOOD.replace("add", "add_again") + next_section)
        assert {each.direct for each in found.values()} == {statements(GOOD)["add"].direct}

    def test_no_statement_hides_what_follows_it_unprepared(self):
        for statement in load_statements().values():
            *_, last = statement.direct.splitlines()
            assert "--" not in last, statement.name
            assert not statement.direct.endswith(";"), statement.name

    def test_constants_become_part_of_the_prepared_statement(self, statements):
        add = statements(GOOD)["add"]
        assert add.prepare({"right"}) == "PREPARE add (integer) AS SELECT $1 + (%(right)s)::integer AS sum"
        assert add.execute({"right"}) == "EXECUTE add (%(left)s)"

    def test_casts_strings_and_comments_contain_no_parameters(self, statements):
        text = "SELECT ':no', 'it''s :no', x::text, 5 {} 2 -- :no\n FROM y WHERE id = {}"
        get = statements(f"-- name: get(id uuid)\n-- Gets.\n{text.format('%', ':id')};")["get"]
        assert get.prepare() == f"PREPARE get (uuid) AS {text.format('%%', '$1')}"
        assert get.direct == text.format("%%", "(%(id)s)::uuid")

    @cases(
        "text",
        [
            GOOD.replace(":right", "1"),
            GOOD.replace("right integer", "wrong integer"),
            GOOD.replace(", right integer", ""),
            GOOD.replace("-- name: add(", "-- name: add ("),
            GOOD.replace("add", "Add"),
            GOOD + GOOD,
            "-- name: broken\n-- Does.\nSELECT 1;",
        ],
    )
    def test_invalid_statement_is_refused_when_loaded(self, statements, text):
        with pytest.raises(InvalidStatement):
            statements(text)

    def test_name_used_in_two_files_is_refused(self, statements):
        with pytest.raises(InvalidStatement, match="add is there twice"):
            statements(GOOD, GOOD)

    def test_postgres_can_prepare_every_statement(self, open_db, database_url):
        with closing(psycopg2.connect(database_url)) as connection, connection.cursor() as cursor:
            for statement in load_statements().values():
                cursor.execute(statement.prepare(), {})
            cursor.execute("SELECT name FROM pg_prepared_statements")
            assert {name for (name,) in cursor.fetchall()} == set(load_statements())


class TestRunning:
    @pytest.mark.parametrize("prepare", [True, False])
    def test_results_are_the_same_with_and_without_preparing(self, open_db, prepare):
        database = open_db(prepare=prepare)
        assert queries.ping(database).answer == 1
        assert queries.list_user_ids(database, filters={}, after=None, most=1) == []
        assert queries.select_addresses(database, id=NO_ID) is None
        assert queries.mark_password_leaked(database, user_id=NO_ID) == 0

    @pytest.mark.parametrize("prepare", [True, False])
    def test_argument_cannot_override_a_constant(self, open_db, database, prepare):
        database.run(
            "INSERT INTO audit_log (action, actor, at) SELECT 'signed_in', 'user', now() - interval '2 days' FROM generate_series(1, 3)"
        )
        three_days = open_db(prepare=prepare, constants={"audit_retention": 3})
        assert queries.delete_old_audit_rows(three_days, batch=9) == 0
        delete: Callable[..., int] = queries.delete_old_audit_rows
        assert delete(three_days, batch=9, audit_retention=1) == 0
        one_day = open_db(prepare=prepare, constants={"audit_retention": 1})
        assert queries.delete_old_audit_rows(one_day, batch=2) == 2

    def test_value_cannot_inject_sql_and_its_error_leaves_the_connection_usable(
        self, open_db, database, alice
    ):
        db = open_db()
        for _ in range(5):
            with pytest.raises(psycopg2.DataError):
                queries.mark_password_leaked(db, user_id="'; DROP TABLE users; --")
            assert queries.ping(db).answer == 1
        assert database.count("users") == 1

    def test_statement_that_waits_for_a_lock_times_out(self, open_db, database, alice, monkeypatch):
        monkeypatch.setattr("sql.pool._TIMEOUTS", SERVICE_TIMEOUTS)
        with database.locked("users", alice.id), pytest.raises(psycopg2.errors.LockNotAvailable):
            queries.mark_password_leaked(open_db(), user_id=alice.id)
        assert database.count("users") == 1


def test_organization_lives_its_day_without_prepared_statements(make_app, alice, bob, service_role, database):
    settings = {"AUTH_ORGANIZATIONS": "users", "AUTH_DB_PREPARE": "false"}
    client = make_app(**settings).test_client()
    owner, member = (session_of(client, sign_in(client, person.email)) for person in (alice, bob))
    assert owner.post("/organizations", json={"name": "Acme"}).status_code == 201
    assert owner.put("/organizations/acme", json={"name": "Acme Inc"}).status_code == 200
    invitation = {"email": bob.email, "role": "admin"}
    assert owner.post("/organizations/acme/invitations", json=invitation).status_code == 201
    (invited,) = member.get("/user/invitations").json["invitations"]
    assert member.post(f"/user/invitations/{invited['id']}", json={}).status_code == 200
    assert member.delete(f"/organizations/acme/members/{bob.id}").status_code == 204
    assert client.delete("/organizations/acme", headers=service_role).status_code == 204
    recorded = {
        action for (action,) in database.all("SELECT action FROM audit_log WHERE details ? 'organization'")
    }
    assert recorded >= {
        "organization_created",
        "organization_changed",
        "membership_added",
        "membership_removed",
    }


def test_requests_work_without_prepared_statements(make_app, mailbox):
    client = make_app(AUTH_DB_PREPARE="false").test_client()
    dave = {"email": "dave@example.com", "password": PASSWORD, "data": {"100%": "%s"}}
    assert client.post("/signup", json=dave).status_code == 201
    assert "access_token=" in client.get(mailbox.link_for("dave@example.com")).location
    session = session_of(client, sign_in(client, "dave@example.com")).refreshed()
    user = session.put("/user", json={"data": {"x": 1}, "password": "Another-Horse-1"}).json
    assert user["user_metadata"] == {"100%": "%s", "x": 1}
    assert session.get("/sessions").json["pagination"]["total"] == 1
    assert session.delete("/user").status_code == 200
    assert_error(session.get("/user"), 401, "user_not_found")
