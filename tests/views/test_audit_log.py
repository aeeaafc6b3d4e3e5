"""What the audit log records: acts with actor, user and network, and refusals."""

import ast
import re
from collections.abc import Iterator
from typing import Any, get_args

import psycopg2
import pytest

import sql
from auth.web.routes import Refusal
from sql import schema
from tests.support.answers import A_UUID, assert_error
from tests.support.cast import PASSWORD, Person, refresh, register
from tests.support.hosts import HOME, at
from tests.support.links import follow, send, type_in
from tests.support.rows import Rows
from tests.support.server import at_once

WRONG_PASSWORD = "Wrong-Horse-1"
FIREFOX = "Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0"


def written(database: Rows) -> list[dict[str, Any]]:
    """Return the rows, the oldest first, without their ids and times."""
    rows = database.all("SELECT to_jsonb(audit_log) - 'id' - 'at' AS row FROM audit_log ORDER BY at, action")
    return [row.row for row in rows]


def refusals(database: Rows) -> list[tuple[str, str, str | None, int]]:
    """Return action, reason, user and count of each refusal, over the minutes in which a test runs."""
    rows = database.all(
        "SELECT action, reason, user_id, sum(count)::integer AS count FROM audit_log WHERE reason IS NOT NULL"
        " GROUP BY action, reason, user_id, network ORDER BY min(at)"
    )
    return [(row.action, row.reason, row.user_id, row.count) for row in rows]


class TestAct:
    def test_act_records_actor_action_user_network_and_request(self, client, alice, database):
        database.run("DELETE FROM audit_log")
        headers = {"X-Request-Id": "a-request-of-alice", "User-Agent": FIREFOX}
        body = {"email": alice.email, "password": PASSWORD}
        session = client.post("/token?grant_type=password", json=body, headers=headers, **at(HOME)).json

        assert written(database) == [
            {
                "action": "signed_in",
                "reason": None,
                "user_id": alice.id,
                "actor": "user",
                "actor_id": alice.id,
                "ip": HOME,
                "network": HOME,
                "user_agent": FIREFOX,
                "request_id": "a-request-of-alice",
                "count": 1,
                "details": {"method": "password", "session_id": A_UUID},
            }
        ]
        assert session["user"]["id"] == alice.id

    def test_act_of_the_service_role_does_not_name_the_user_as_actor(
        self, client, alice, service_role, database
    ):
        database.run("DELETE FROM audit_log")
        client.put(f"/admin/users/{alice.id}", json={"role": "admin"}, headers=service_role)

        (row,) = written(database)
        assert (row["action"], row["user_id"], row["actor"], row["actor_id"]) == (
            "role_changed",
            alice.id,
            "service_role",
            None,
        )
        assert row["details"] == {"old_role": "authenticated", "role": "admin"}

    def test_act_of_an_administrator_names_the_administrator(self, client, carol, database):
        session = carol.open_session()
        database.run("DELETE FROM audit_log")
        created = session.post("/admin/users", json={"email": "dave@example.com"}).json

        (row,) = written(database)
        assert (row["action"], row["user_id"], row["actor"], row["actor_id"]) == (
            "user_created",
            created["id"],
            "user",
            carol.id,
        )

    def test_request_for_a_message_has_no_actor(self, client, alice, database):
        database.run("DELETE FROM audit_log")
        client.post("/recover", json={"email": alice.email})

        (row,) = written(database)
        assert (row["action"], row["user_id"], row["actor"], row["actor_id"]) == (
            "message_requested",
            alice.id,
            "anonymous",
            None,
        )
        assert row["details"] == {"purpose": "recovery", "is_sent": True}

    def test_act_outlives_its_user(self, client, alice, database):
        alice.sign_in().delete("/user")

        assert database.count("users") == 0
        assert [row["action"] for row in written(database)] == ["user_created", "signed_in", "user_deleted"]

    def test_audit_log_contains_no_secret(self, client, alice, service_role, database, outbox):
        session = alice.open_session()
        session.put("/user", json={"password": "New-Horse-2", "email": "new@example.com"})
        sent = outbox.last("new@example.com")
        type_in(client, "email_change", "new@example.com", sent.wrong_code)
        follow(client, "email_change", sent.token)

        text = str(database.all("SELECT * FROM audit_log"))
        assert all(
            secret not in text
            for secret in (
                PASSWORD,
                "New-Horse-2",
                sent.token,
                sent.code,
                session.access_token,
                session.refresh_token,
            )
        )


class TestRefusal:
    @pytest.fixture
    def quiet(self, alice, database) -> Person:
        """Alice, without audit rows so far."""
        database.run("DELETE FROM audit_log")
        return alice

    def test_wrong_password_is_recorded_with_its_count(self, make_app, client, quiet, database):
        limited = make_app(AUTH_RATE_LIMITS_ENABLED="true").test_client()
        database.run("DELETE FROM audit_log")
        for _ in range(3):
            assert quiet.try_to_sign_in(WRONG_PASSWORD, limited).status_code == 401

        # Two when a minute ends between them.
        *before, row = written(database)
        assert (row["action"], row["reason"], row["user_id"]) == (
            "sign_in_refused",
            "invalid_credentials",
            quiet.id,
        )
        assert (row["count"] + sum(each["count"] for each in before), len(before)) in ((3, 0), (3, 1))
        assert (row["actor"], row["actor_id"], row["details"]) == ("anonymous", None, {"tries": 3, "of": 10})

    def test_refusal_beyond_the_limit_is_recorded_with_that_reason(self, make_app, client, quiet, database):
        limited = make_app(
            AUTH_RATE_LIMITS_ENABLED="true", AUTH_RATE_LIMIT_LOGIN_FAILURES="2 per hour"
        ).test_client()
        database.run("DELETE FROM audit_log")
        assert [quiet.try_to_sign_in(WRONG_PASSWORD, limited).status_code for _ in range(4)] == [
            401,
            401,
            429,
            429,
        ]

        assert refusals(database) == [
            ("sign_in_refused", "invalid_credentials", quiet.id, 2),
            ("sign_in_refused", "over_request_rate_limit", quiet.id, 2),
        ]

    def test_fifty_concurrent_refusals_are_one_row(self, client, quiet, database, app):
        answers = at_once(50, lambda _: sign_in_wrongly(app, quiet.email))

        assert {answer.status_code for answer in answers} <= {401, 503}
        wrong = sum(answer.status_code == 401 for answer in answers)
        assert sum(count for _, _, _, count in refusals(database)) == wrong > 0
        # Two when a minute ended between them.
        assert database.count("audit_log", "reason IS NOT NULL") <= 2

    def test_refusals_are_counted_per_minute_network_user_and_reason(self, client, quiet, bob, database):
        database.run("DELETE FROM audit_log")
        quiet.try_to_sign_in(WRONG_PASSWORD)
        bob.try_to_sign_in(WRONG_PASSWORD)
        client.post(
            "/token?grant_type=password", json={"email": quiet.email, "password": WRONG_PASSWORD}, **at(HOME)
        )
        database.run("UPDATE users SET banned_until = now() + interval '1 hour'")
        quiet.try_to_sign_in()

        assert len(refusals(database)) == 4
        assert {count for _, _, _, count in refusals(database)} == {1}

    def test_refusal_for_an_unknown_address_names_no_user(self, client, database):
        client.post(
            "/token?grant_type=password", json={"email": "nobody@example.com", "password": WRONG_PASSWORD}
        )

        assert refusals(database) == [("sign_in_refused", "invalid_credentials", None, 1)]
        assert "nobody@example.com" not in str(written(database))

    def test_wrong_code_and_dead_link_are_recorded_for_their_user(
        self, client, service_role, outbox, database
    ):
        sent = send("magiclink", client, service_role, outbox)
        type_in(client, "magiclink", sent.to, sent.wrong_code)
        follow(client, "magiclink", sent.token)
        follow(client, "magiclink", sent.token)
        follow(client, "magiclink", "a" * 43)

        assert refusals(database) == [
            ("verification_refused", "otp_expired", sent.user_id, 2),
            ("verification_refused", "otp_expired", None, 1),
        ]

    def test_refresh_of_an_ended_session_is_recorded(self, client, quiet, database):
        session = quiet.sign_in()
        session.post("/logout")
        session.refresh()

        assert refusals(database) == [("refresh_refused", "refresh_token_not_found", quiet.id, 1)]

    def test_forged_refresh_token_does_not_reach_the_database(self, client, parts, database):
        before = parts.db.statements_run
        assert refresh(client, "a" * 56).status_code == 400

        assert (parts.db.statements_run - before, refusals(database)) == (0, [])

    def test_missing_reauthentication_is_recorded(self, client, quiet, database):
        session = quiet.sign_in()
        database.run("UPDATE sessions SET created_at = created_at - interval '2 days'")
        session.put("/user", json={"password": "New-Horse-2"})
        session.put("/user", json={"password": "New-Horse-2", "current_password": WRONG_PASSWORD})
        session.delete("/user")

        assert refusals(database) == [
            ("change_refused", "reauthentication_needed", quiet.id, 2),
            ("change_refused", "current_password_invalid", quiet.id, 1),
        ]

    def test_user_refused_by_an_administrators_route_is_named(self, client, quiet, database):
        session = quiet.sign_in()
        session.get("/admin/users")
        session.delete(f"/admin/users/{quiet.id}")

        assert refusals(database) == [
            ("admin_refused", "not_admin", quiet.id, 1),
            ("admin_refused", "insufficient_permissions", quiet.id, 1),
        ]
        assert {(row["actor"], row["actor_id"]) for row in written(database) if row["reason"]} == {
            ("user", quiet.id)
        }

    def test_wrong_key_is_recorded(self, client, database):
        client.get("/admin/users", headers={"Authorization": "Bearer a-key-that-somebody-guesses"})
        client.get("/admin/users", headers={"apikey": "a-key-that-somebody-guesses"})

        assert refusals(database) == [("admin_refused", "bad_jwt", None, 2)]

    @pytest.mark.parametrize(
        ("method", "path", "body"),
        [
            ("POST", "/token?grant_type=password", {"email": "no address"}),
            ("POST", "/token?grant_type=password", {}),
            ("GET", "/user", None),
            ("PUT", "/user", {}),
            ("GET", "/admin/users", None),
            ("GET", "/nowhere", None),
        ],
    )
    def test_invalid_or_unauthenticated_request_is_not_recorded(self, method, path, body, client, database):
        client.open(path, method=method, json=body)

        assert written(database) == []

    def test_response_is_the_same_when_the_refusal_cannot_be_recorded(self, client, alice, database):
        database.run("ALTER TABLE audit_log RENAME TO mislaid")
        try:
            assert_error(
                alice.try_to_sign_in(WRONG_PASSWORD), 401, "invalid_credentials", "Invalid login credentials"
            )
        finally:
            database.run("ALTER TABLE mislaid RENAME TO audit_log")

    def test_recording_a_refusal_does_not_wait_for_the_disk(self, database_url):
        statement = sql.load_statements()["record_refusal"]
        connection = psycopg2.connect(database_url)
        with connection.cursor() as cursor:
            cursor.execute(
                statement.direct,
                dict.fromkeys(statement.parameters)
                | {"origin": {"actor": "anonymous"}, "action": "x", "reason": "y", "details": {}},
            )
            cursor.execute("SHOW synchronous_commit")
            assert cursor.fetchone() == ("off",)
        connection.close()


def sign_in_wrongly(app: Any, email: str) -> Any:
    return app.test_client().post(
        "/token?grant_type=password", json={"email": email, "password": WRONG_PASSWORD}
    )


def acts_of(text: str) -> set[str]:
    """Return the acts that the calls of record_acts in a statement name: their fourth argument."""
    found = set()
    for match in re.finditer(r"record_acts\(", text):
        depth, place, arguments = 1, match.end(), [""]
        while depth:
            letter = text[place]
            depth += (letter in "([") - (letter in ")]")
            if letter == "," and depth == 1:
                arguments.append("")
            else:
                arguments[-1] += letter
            place += 1
        acts = re.sub(r"WHEN '\w+'", "", arguments[3])
        found |= {name for names in re.findall(r"'\{?([a-z_, ]+)\}?'", acts) for name in names.split(", ")}
    return found


def words_in(node: ast.AST | None) -> Iterator[str]:
    """Yield the strings that a list, a conditional expression or a dictionary's keys may be."""
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        yield node.value
    parts = {ast.List: ["elts"], ast.Tuple: ["elts"], ast.IfExp: ["body", "orelse"], ast.Dict: ["keys"]}.get(
        type(node), []
    )
    for part in parts:
        value = getattr(node, part)
        for inner in value if isinstance(value, list) else [value]:
            yield from words_in(inner)


def acts_in(module: ast.Module) -> set[str]:
    """Return the acts that a module records: the positional arguments of `record`, and variables `acts`."""
    nodes: list[ast.expr] = []
    for node in ast.walk(module):
        if isinstance(node, ast.Call) and ast.unparse(node.func) in (
            "audit.record",
            "_record",
            "_store",
            "_tell",
        ):
            nodes += node.args
        elif isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) in (
            "acts",
            "(act, event)",
            "act, event",
        ):
            nodes.append(node.value)
        elif isinstance(node, ast.Assign) and ast.unparse(node.targets[0]).startswith(("(acts,", "acts,")):
            nodes += node.value.elts[:1] if isinstance(node.value, ast.Tuple) else []
    # Events have a dot.
    return {word for node in nodes for word in words_in(node) if "." not in word}


def test_documentation_lists_exactly_the_recorded_actions():
    acts = set().union(
        *(acts_of(re.sub(r"--[^\n]*", "", statement.text)) for statement in sql.load_statements().values())
    )
    acts |= set().union(
        *(
            acts_in(ast.parse(path.read_text()))
            for path in (schema.SCHEMA.parent / "auth").rglob("*.py")
        )
    )
    document = (schema.SCHEMA.parent / "docs" / "audit.md").read_text().partition("\n## Actions\n")[2]

    assert set(re.findall(r"^\| `(\w+)` \|", document, re.MULTILINE)) == acts | set(get_args(Refusal))


def test_sign_up_records_the_given_address(client, service_role, database):
    register(client, service_role, "dave@example.com")
    client.post("/signup", json={"email": "dave@example.com", "password": PASSWORD})

    (row,) = [row for row in written(database) if row["reason"]]
    assert (row["action"], row["reason"], row["user_id"]) == (
        "sign_up_refused",
        "user_already_exists",
        database.value("SELECT id FROM users"),
    )
