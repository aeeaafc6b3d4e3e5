"""POST /admin/users/{id}/logout: ending the sessions of any user."""

import pytest

from tests.support.answers import A_TIMESTAMP, assert_error, assert_ok
from tests.support.server import at_once

SIGNED_OUT = {"message": "User signed out", "timestamp": A_TIMESTAMP}


@pytest.fixture
def log_out(client, service_role):
    return lambda id, **options: client.post(f"/admin/users/{id}/logout", headers=service_role, **options)


def test_logout_ends_all_sessions_of_the_user_alone(log_out, alice, bob, database):
    sessions, other = [alice.open_session() for _ in range(3)], bob.open_session()
    # Ids are case-insensitive.
    assert_ok(log_out(alice.id.upper()), SIGNED_OUT)
    for session in sessions:
        assert_error(session.get("/user"), 401, "session_not_found")
        assert_error(session.refresh(), 400, "refresh_token_not_found")
    reasons = database.all("SELECT DISTINCT end_reason FROM sessions WHERE ended_at IS NOT NULL")
    assert reasons == [("ended_by_admin",)]
    assert other.get("/user").status_code == 200
    assert other.refresh().status_code == 200
    assert alice.sign_in().get("/user").status_code == 200
    assert_error(sessions[0].get("/user"), 401, "session_not_found")


def test_session_that_had_ended_keeps_its_reason_and_time(log_out, alice, database):
    assert_ok(log_out(alice.id), SIGNED_OUT)
    alice.sign_in().post("/logout")
    before = database.everything("sessions")
    assert_ok(log_out(alice.id), SIGNED_OUT)
    assert database.everything("sessions") == before


def test_body_must_have_no_members(log_out, alice):
    session = alice.open_session()
    details = "scope: is not a member of this body"
    assert_error(log_out(alice.id, json={"scope": "local"}), 400, "validation_failed", details=details)
    assert session.get("/user").status_code == 200
    assert_ok(log_out(alice.id, json={}), SIGNED_OUT)


def test_get_does_not_log_out(client, service_role, alice):
    session = alice.open_session()
    response = client.get(f"/admin/users/{alice.id}/logout", headers=service_role)
    assert_error(response, 405, "method_not_allowed")
    assert session.get("/user").status_code == 200


def test_waiting_refresh_finds_the_session_ended(app, service_role, alice, database):
    session, path = alice.open_session(), f"/admin/users/{alice.id}/logout"
    with database.locked("sessions", session.id) as lock:
        logout = lock.start(lambda: app.test_client().post(path, headers=service_role))
        refresh = lock.start(session.on(app.test_client()).refresh)
    assert logout.result().status_code == 200
    assert_error(refresh.result(), 400, "refresh_token_not_found")


def test_fifty_concurrent_requests_all_succeed(server, service_role, alice, database):
    alice.sign_in()
    answers = at_once(50, lambda _: server.post(f"/admin/users/{alice.id}/logout", headers=service_role))
    assert {answer.status_code for answer in answers} == {200}
    assert database.count("sessions", "ended_at IS NULL") == 0
