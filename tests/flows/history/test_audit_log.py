"""The audit log: acts with actor, user and network, and refusals."""

import re
from typing import Any

import pytest

from auth.core.text.labels import names
from auth.flows.history import timeline
from sql import schema
from tests.support import previous_release
from tests.support.answers import A_UUID, assert_error
from tests.support.audit import FIREFOX, clear_history, record
from tests.support.checked_rows import statements_run
from tests.support.factors import set_up
from tests.support.links import follow, send, type_in
from tests.support.server import at_once
from tests.support.services import HOME, at
from tests.support.tables import Rows
from tests.support.users import PASSWORD, Person, refresh, sign_in

WRONG_PASSWORD = "Wrong-Horse-1"


def rows_of_log(database: Rows) -> list[dict[str, Any]]:
    """Return the rows, the oldest first, without their ids and times."""
    rows = database.all("SELECT to_jsonb(audit_log) - 'id' - 'at' AS row FROM audit_log ORDER BY at, action")
    return [row.row for row in rows]


def entry_of(row: dict[str, Any]) -> list[Any]:
    """Return action, user and actor of a row."""
    return [row[name] for name in ("action", "user_id", "actor", "actor_id")]


def refusals(database: Rows) -> list[tuple[str, str, str | None, int]]:
    """Return action, reason, user and count of each refusal, over the minutes in which a test runs."""
    rows = database.all(
        "SELECT action, reason, user_id, sum(count)::integer AS count FROM audit_log WHERE reason IS NOT NULL"
        " GROUP BY action, reason, user_id, network ORDER BY min(at)"
    )
    return [(row.action, row.reason, row.user_id, row.count) for row in rows]


class TestAct:
    def test_act_records_actor_action_user_network_and_request(self, client, alice, database):
        clear_history(database)
        headers = {"X-Request-Id": "a-request-of-alice", "User-Agent": FIREFOX}
        body = {"email": alice.email, "password": PASSWORD}
        client.post("/token?grant_type=password", json=body, headers=headers, **at(HOME))
        assert rows_of_log(database) == [
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

    def test_actor_is_a_user_the_service_role_or_anonymous(
        self, client, alice, carol, service_role, database
    ):
        session = carol.open_session()
        clear_history(database)
        client.put(f"/admin/users/{alice.id}", json={"role": "admin"}, headers=service_role)
        new_user = session.post("/admin/users", json={"email": "dave@example.com"}).json
        client.post("/recover", json={"email": alice.email})
        change, creation, request = rows_of_log(database)
        assert entry_of(change) == ["role_changed", alice.id, "service_role", None]
        assert change["details"] == {"old_role": "authenticated", "role": "admin"}
        assert entry_of(creation) == ["user_created", new_user["id"], "user", carol.id]
        assert entry_of(request) == ["message_requested", alice.id, "anonymous", None]
        assert request["details"] == {"purpose": "recovery", "is_sent": True}

    def test_audit_log_outlives_the_user_and_contains_no_secret(self, client, alice, database, outbox):
        session = alice.open_session()
        session.put("/user", json={"password": "New-Horse-2", "email": "new@example.com"})
        message = outbox.last("new@example.com")
        type_in(client, "email_change", "new@example.com", message.wrong_code)
        follow(client, "email_change", message.token)
        text = str(database.all("SELECT * FROM audit_log"))
        tokens = [message.token, message.code, session.access_token, session.refresh_token]
        assert [secret for secret in (PASSWORD, "New-Horse-2", *tokens) if secret in text] == []
        client.delete("/user", headers=session.authorization)
        actions = [row["action"] for row in rows_of_log(database)]
        assert (actions[0], actions[-1], database.count("users")) == ("user_created", "user_deleted", 0)


class TestRefusal:
    @pytest.fixture
    def quiet(self, alice, database) -> Person:
        """Alice, without audit rows so far."""
        clear_history(database)
        return alice

    def test_wrong_password_has_its_count_and_the_reason_beyond_the_limit(self, make_app, quiet, database):
        settings = {"AUTH_RATE_LIMITS_ENABLED": "true", "AUTH_RATE_LIMIT_LOGIN_FAILURES": "2 per hour"}
        client = make_app(**settings).test_client()
        statuses = [quiet.try_to_sign_in(WRONG_PASSWORD, client).status_code for _ in range(4)]
        assert statuses == [401, 401, 429, 429]
        assert refusals(database) == [
            ("sign_in_refused", "invalid_credentials", quiet.id, 2),
            ("sign_in_refused", "over_request_rate_limit", quiet.id, 2),
        ]
        # More rows when a minute ends between them.
        row = [row for row in rows_of_log(database) if row["reason"] == "invalid_credentials"][-1]
        assert entry_of(row) == ["sign_in_refused", quiet.id, "anonymous", None]
        assert row["details"] == {"tries": 2, "of": 2}

    def test_fifty_concurrent_refusals_are_one_row(self, quiet, database, app):
        answers = at_once(50, lambda _: quiet.try_to_sign_in(WRONG_PASSWORD, app.test_client()))
        assert {answer.status_code for answer in answers} <= {401, 503}
        refused_sign_ins = sum(answer.status_code == 401 for answer in answers)
        assert sum(count for _, _, _, count in refusals(database)) == refused_sign_ins > 0
        # Two when a minute ended between them.
        assert database.count("audit_log", "reason IS NOT NULL") <= 2

    def test_refusals_are_counted_per_minute_network_user_and_reason(self, client, quiet, bob, database):
        quiet.try_to_sign_in(WRONG_PASSWORD)
        bob.try_to_sign_in(WRONG_PASSWORD)
        body = {"email": quiet.email, "password": WRONG_PASSWORD}
        client.post("/token?grant_type=password", json=body, **at(HOME))
        database.run("UPDATE users SET banned_until = now() + interval '1 hour'")
        quiet.try_to_sign_in()
        assert [count for _, _, _, count in refusals(database)] == [1] * 4

    def test_refusal_names_the_user_of_the_given_address_if_any(self, client, quiet, database):
        sign_in(client, "nobody@example.com", WRONG_PASSWORD)
        client.post("/signup", json={"email": quiet.email, "password": PASSWORD})
        assert refusals(database) == [
            ("sign_in_refused", "invalid_credentials", None, 1),
            ("sign_up_refused", "user_already_exists", quiet.id, 1),
        ]
        assert "nobody@example.com" not in str(rows_of_log(database))

    def test_wrong_code_and_dead_link_are_recorded_by_user(self, client, service_role, outbox, database):
        message = send("magiclink", client, service_role, outbox)
        type_in(client, "magiclink", message.to, message.wrong_code)
        for token in (message.token, message.token, "a" * 43):
            follow(client, "magiclink", token)
        assert refusals(database) == [
            ("verification_refused", "otp_expired", message.user_id, 2),
            ("verification_refused", "otp_expired", None, 1),
        ]

    def test_refresh_of_ended_session_is_recorded_but_no_forged_token(self, client, parts, quiet, database):
        before = statements_run()
        assert refresh(client, "a" * 56).status_code == 400
        assert (statements_run() - before, refusals(database)) == (0, [])
        session = quiet.sign_in()
        session.post("/logout")
        session.refresh()
        assert refusals(database) == [("refresh_refused", "refresh_token_not_found", quiet.id, 1)]

    def test_missing_reauthentication_is_recorded(self, quiet, database):
        session = quiet.sign_in()
        database.run("UPDATE sessions SET created_at = created_at - interval '2 days'")
        session.put("/user", json={"password": "New-Horse-2"})
        session.put("/user", json={"password": "New-Horse-2", "current_password": WRONG_PASSWORD})
        session.delete("/user")
        assert refusals(database) == [
            ("change_refused", "reauthentication_needed", quiet.id, 2),
            ("change_refused", "current_password_invalid", quiet.id, 1),
        ]

    def test_attempt_of_a_code_is_recorded_where_the_code_is_wrong_and_not_where_something_else_is(
        self, client, alice, database
    ):
        app, session = set_up(alice.open_session(client))
        identity_id = database.value("SELECT id FROM identities")
        database.run(
            "UPDATE sessions SET created_at = created_at - interval '1 hour', reauthenticated_at = NULL"
        )
        database.run("UPDATE sessions SET factor_proved_at = created_at")
        clear_history(database)
        for code in (app.wrong_code(), app.code()):
            session.delete(f"/user/identities/{identity_id}", json={"factor_code": code})
        assert [(row["reason"], row["details"]) for row in rows_of_log(database)] == [
            ("reauthentication_not_valid", {"tries": 1, "of": 20}),
            ("single_identity_not_deletable", {}),
        ]

    def test_user_or_wrong_key_refused_by_an_administrators_route_is_recorded(self, client, quiet, database):
        session = quiet.sign_in()
        session.get("/admin/users")
        session.delete(f"/admin/users/{quiet.id}")
        actors = {(row["actor"], row["actor_id"]) for row in rows_of_log(database) if row["reason"]}
        assert actors == {("user", quiet.id)}
        client.get("/admin/users", headers={"Authorization": "Bearer a-key-that-somebody-guesses"})
        client.get("/admin/users", headers={"apikey": "a-key-that-somebody-guesses"})
        assert refusals(database) == [
            ("admin_refused", "not_admin", quiet.id, 1),
            ("admin_refused", "insufficient_permissions", quiet.id, 1),
            ("admin_refused", "bad_jwt", None, 2),
        ]

    def test_invalid_or_unauthenticated_request_is_not_recorded(self, client, database):
        client.post("/token?grant_type=password", json={"email": "no address"})
        client.put("/user", json={})
        for path in ("/user", "/admin/users", "/nowhere"):
            client.get(path)
        assert rows_of_log(database) == []

    def test_response_is_the_same_when_the_refusal_cannot_be_recorded(self, alice, database):
        database.run("ALTER TABLE audit_log RENAME TO mislaid")
        try:
            response = alice.try_to_sign_in(WRONG_PASSWORD)
            assert_error(response, 401, "invalid_credentials", "Invalid login credentials")
        finally:
            database.run("ALTER TABLE mislaid RENAME TO audit_log")


def test_user_is_the_actor_of_the_same_anonymous_acts_in_new_entries_and_in_old_ones(alice, database):
    clear_history(database)
    for action in names("acts"):
        record(database, alice.id, action)
    rows = database.all("SELECT action FROM audit_log WHERE actor = 'user' AND actor_id = user_id")
    assert {row.action for row in rows} == timeline.OWN_ACTS


def test_documentation_lists_exactly_the_recorded_actions():
    root = schema.SCHEMA.parent
    paths = [*(root / "auth").rglob("*.py"), *(root / "sql").glob("*.sql"), *schema.FUNCTIONS.glob("*.sql")]
    code = " ".join(path.read_text() for path in paths if path.name != previous_release.FILE)
    quoted = re.findall(r"""["'][{]?([a-z_]+(?:, ?[a-z_]+)*)[}]?["']""", code)
    words = {word for each in quoted for word in each.replace(" ", "").split(",")}
    recorded_actions = set(re.findall(r'\brecord\([^\[\]]*?[(,]\s*\["(\w+)"', code))
    document = (root / "docs" / "audit.md").read_text().partition("\n## Actions\n")[2]
    cells = re.findall(r"^- (`[^:]+`)", document, re.MULTILINE)
    documented = set(re.findall(r"\w+", " ".join(cells)))
    missing = (recorded_actions | names("acts", "refused") & words) - documented
    assert [f"docs/audit.md: the list of actions lacks {action}" for action in missing] == []
    assert documented - words == set()
