"""POST /admin/users/{id}/logout: ending the sessions of any user."""

import uuid

import pytest

from tests.support.answers import A_SENTENCE, A_TIMESTAMP, assert_error, assert_ok
from tests.support.cases import cases
from tests.support.server import at_once

SIGNED_OUT = {"message": "User signed out", "timestamp": A_TIMESTAMP}


@pytest.fixture
def log_out(client, service_role):
    return lambda id, **options: client.post(f"/admin/users/{id}/logout", headers=service_role, **options)


def test_logout_ends_all_sessions_of_the_user(log_out, alice, database):
    sessions = [alice.open_session() for _ in range(3)]
    assert_ok(log_out(alice.id), SIGNED_OUT)
    for session in sessions:
        assert_error(session.get("/user"), 401, "session_not_found")
        assert_error(session.refresh(), 400, "refresh_token_not_found")
    assert {row.end_reason for row in database.all("SELECT end_reason FROM sessions")} == {"ended_by_admin"}


def test_logout_keeps_sessions_of_other_users(log_out, alice, bob):
    other = bob.open_session()
    log_out(alice.id)
    assert other.get("/user").status_code == 200
    assert other.refresh().status_code == 200


def test_user_may_sign_in_again(log_out, alice):
    ended = alice.open_session()
    log_out(alice.id)
    assert alice.sign_in().get("/user").status_code == 200
    assert_error(ended.get("/user"), 401, "session_not_found")


def test_logout_succeeds_without_sessions(log_out, alice):
    assert_ok(log_out(alice.id), SIGNED_OUT)
    assert_ok(log_out(alice.id), SIGNED_OUT)


def test_session_that_had_ended_keeps_its_reason_and_time(log_out, alice, database):
    alice.sign_in().post("/logout")
    before = database.everything("sessions")
    log_out(alice.id)
    assert database.everything("sessions") == before


def test_body_must_have_no_members(log_out, alice):
    session = alice.open_session()
    details = "scope: is not a member of this body"
    assert_error(log_out(alice.id, json={"scope": "local"}), 400, "validation_failed", details=details)
    assert session.get("/user").status_code == 200
    assert_ok(log_out(alice.id, json={}), SIGNED_OUT)


def test_id_is_case_insensitive(log_out, alice):
    session = alice.open_session()
    assert_ok(log_out(alice.id.upper()), SIGNED_OUT)
    assert session.get("/user").status_code == 401


@cases(
    "id",
    [
        str(uuid.UUID(int=0)),
        "1",
        "me",
        "%00",
        "0" * 32,
        "' OR true --",
        "{00000000-0000-0000-0000-000000000000}",
    ],
)
def test_unknown_or_malformed_id_is_404(log_out, alice, database, id):
    session = alice.open_session()
    assert_error(log_out(id), 404, "user_not_found", "User not found")
    assert session.get("/user").status_code == 200


class TestAuthorization:
    def test_administrators_may_not_log_users_out(self, carol, alice):
        session = alice.open_session()
        assert_error(
            carol.sign_in().post(f"/admin/users/{alice.id}/logout"),
            403,
            "insufficient_permissions",
            "Only the service role key may do this",
        )
        assert session.get("/user").status_code == 200

    def test_users_are_refused_even_for_themselves(self, mallory):
        session = mallory.open_session()
        assert_error(session.post(f"/admin/users/{mallory.id}/logout"), 403, "insufficient_permissions")
        assert session.get("/user").status_code == 200

    def test_missing_credential_is_refused(self, client, alice):
        assert_error(
            client.post(f"/admin/users/{alice.id}/logout"), 401, "no_authorization", details=A_SENTENCE
        )


def test_get_does_not_log_out(client, service_role, alice):
    session = alice.open_session()
    assert_error(
        client.get(f"/admin/users/{alice.id}/logout", headers=service_role), 405, "method_not_allowed"
    )
    assert session.get("/user").status_code == 200


def test_waiting_refresh_finds_the_session_ended(app, client, service_role, alice, database):
    session = alice.open_session()
    with database.locked("sessions", session.id) as lock:
        logout = lock.start(
            lambda: app.test_client().post(f"/admin/users/{alice.id}/logout", headers=service_role)
        )
        refresh = lock.start(session.on(app.test_client()).refresh)
    assert logout.result().status_code == 200
    assert_error(refresh.result(), 400, "refresh_token_not_found")


def test_fifty_concurrent_requests_all_succeed(server, service_role, alice, database):
    alice.sign_in()
    answers = at_once(50, lambda _: server.post(f"/admin/users/{alice.id}/logout", headers=service_role))
    assert {answer.status_code for answer in answers} == {200}
    assert database.count("sessions", "ended_at IS NULL") == 0
