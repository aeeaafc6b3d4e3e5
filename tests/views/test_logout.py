"""POST /logout: ending all sessions of a user, the current one, or the others."""

import pytest

from tests.support.answers import A_TIMESTAMP, assert_error, assert_ok
from tests.support.cases import cases
from tests.support.server import at_once

DONE = {"message": "Successfully logged out", "timestamp": A_TIMESTAMP}


def assert_signed_out(session):
    assert_error(session.get("/user"), 401, "session_not_found")
    assert_error(
        session.refresh(), 400, "refresh_token_not_found", "Invalid Refresh Token: Refresh Token Not Found"
    )


def assert_signed_in(session):
    assert session.get("/user").status_code == 200
    assert session.refresh().status_code == 200


@pytest.mark.parametrize("query", ["", "?scope=global"])
def test_logout_ends_all_sessions(alice, query):
    laptop, phone = alice.open_session(), alice.open_session()
    assert_ok(laptop.post(f"/logout{query}"), DONE)
    assert_signed_out(laptop)
    assert_signed_out(phone)


def test_scope_local_ends_the_current_session(alice):
    laptop, phone = alice.open_session(), alice.open_session()
    assert_ok(laptop.post("/logout?scope=local"), DONE)
    assert_signed_out(laptop)
    assert_signed_in(phone)


def test_scope_others_ends_all_but_the_current_session(alice):
    laptop, phone, tablet = (alice.open_session() for _ in range(3))
    assert_ok(laptop.post("/logout?scope=others"), DONE)
    assert_signed_in(laptop)
    assert_signed_out(phone)
    assert_signed_out(tablet)


@pytest.mark.parametrize("scope", ["global", "local", "others"])
def test_logout_keeps_sessions_of_other_users(alice, bob, scope):
    other = bob.open_session()
    alice.sign_in().post(f"/logout?scope={scope}")
    assert_signed_in(other)


def test_logout_voids_every_refresh_token_of_the_session(client, alice):
    first = alice.open_session()
    second = first.refreshed()
    second.post("/logout")
    for session in (first, second):
        assert_signed_out(session)


def test_second_logout_keeps_reason_and_time_of_the_end(alice, database):
    alice.sign_in().post("/logout")
    assert database.one(
        "SELECT end_reason, ended_at BETWEEN now() - interval '1 minute' AND now() AS just_now FROM sessions"
    ) == ("logout", True)


def test_session_ended_earlier_keeps_its_reason(alice, database):
    laptop, phone = alice.open_session(), alice.open_session()
    phone.delete(f"/sessions/{phone.id}")
    laptop.post("/logout")
    assert database.value("SELECT end_reason FROM sessions WHERE id = %(id)s", id=phone.id) == "ended_by_user"


def test_user_may_sign_in_again(alice):
    alice.sign_in().post("/logout")
    assert_signed_in(alice.sign_in())


def test_second_logout_is_401(alice):
    session = alice.open_session()
    session.post("/logout")
    assert_error(
        session.post("/logout"), 401, "session_not_found", "Your session has ended. Please sign in again."
    )


@cases(
    ("query", "details"),
    [
        ("?scope=", "scope: must be one of global, local, others"),
        ("?scope=all", "scope: must be one of global, local, others"),
        ("?scope=Local", "scope: must be one of global, local, others"),
        ("?scope=local&scope=global", "scope: must be given once"),
    ],
)
def test_unknown_scope_is_400_and_ends_nothing(alice, query, details):
    session = alice.open_session()
    assert_error(session.post(f"/logout{query}"), 400, "validation_failed", details=details)
    assert_signed_in(session)


def test_logout_costs_one_statement(alice, parts):
    session = alice.open_session()
    before = parts.db.statements_run
    session.post("/logout")
    assert parts.db.statements_run == before + 1


def test_get_is_405(alice):
    session = alice.open_session()
    response = session.get("/logout")
    assert_error(response, 405, "method_not_allowed")
    assert set(response.headers["Allow"].split(", ")) == {"POST", "OPTIONS"}
    assert_signed_in(session)


def test_concurrent_logouts_end_the_session_once(server, alice, database):
    session = alice.sign_in()
    answers = at_once(16, lambda _: session.on(server).post("/logout"))
    assert {answer.status_code for answer in answers} <= {200, 401}
    assert 200 in {answer.status_code for answer in answers}
    for answer in at_once(16, lambda _: session.on(server).get("/user")):
        assert_error(answer, 401, "session_not_found")
