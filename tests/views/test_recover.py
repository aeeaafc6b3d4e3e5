"""POST /recover: a link by mail for a lost password."""

import pytest

from tests.support.answers import A_SENTENCE, A_TIMESTAMP, assert_error, assert_ok, user
from tests.support.cases import cases
from tests.support.cast import Session
from tests.support.links import (
    ON_ITS_WAY,
    PHONE,
    SITE,
    assert_dead,
    assert_signed_in,
    assert_signs_in,
    follow,
    fragment,
    hand_in,
    later,
    path,
    type_in,
)

NEW = "Another-Horse-1"


@pytest.fixture
def message(client, alice, outbox):
    """The recovery message to Alice."""
    assert_ok(client.post("/recover", json={"email": alice.email}), ON_ITS_WAY)
    return outbox.last()


def test_known_address_is_sent_one_link_and_code(message, alice, outbox):
    assert len(outbox.sent()) == 1
    assert (message.kind, message.channel, message.to, message.lifetime) == (
        "recovery",
        "email",
        alice.email,
        3600,
    )
    assert (len(message.token), len(message.code)) == (43, 6)


def test_request_does_not_change_the_user(client, alice, database):
    session = alice.open_session()
    before = database.everything("users", "identities", "sessions")
    client.post(
        "/recover", json={"email": alice.email, "create_user": True, "data": {"x": 1}, "password": NEW}
    )
    assert database.everything("users", "identities", "sessions") == before
    assert session.get("/user").status_code == 200
    assert alice.try_to_sign_in().status_code == 200


def test_link_signs_in_and_keeps_the_password_until_a_new_one_is_set(client, message, alice):
    session = assert_signs_in(client, "recovery", message.token)
    assert session.get("/user").json == user(alice.email, id=alice.id, last_sign_in_at=A_TIMESTAMP)
    assert alice.try_to_sign_in().status_code == 200


def test_session_started_by_recovery_sets_a_password_without_the_old_one(client, message, alice, database):
    thief = alice.open_session()
    session = assert_signs_in(client, "recovery", message.token)
    assert session.put("/user", json={"password": NEW}).status_code == 200
    assert_error(thief.get("/user"), 401, "session_not_found")
    assert_error(alice.try_to_sign_in(), 401, "invalid_credentials")
    assert alice.try_to_sign_in(NEW).status_code == 200


def test_code_signs_in(client, message, alice):
    assert_signed_in(
        client,
        type_in(client, "recovery", alice.email, message.code),
        user(alice.email, id=alice.id, last_sign_in_at=A_TIMESTAMP),
        recent_changes=[],
    )


def test_link_works_once(client, message, alice, database):
    assert_signs_in(client, "recovery", message.token)
    assert_dead(client, "recovery", message.token)
    assert_error(type_in(client, "recovery", alice.email, message.code), 403, "otp_expired")
    assert database.count("sessions") == 1


def test_link_expires_after_an_hour(client, message, alice, database):
    later(database, secs=3600)
    assert_dead(client, "recovery", message.token)
    assert_error(type_in(client, "recovery", alice.email, message.code), 403, "otp_expired")
    assert database.count("sessions") == 0


@pytest.mark.parametrize("type", ["magiclink", "signup", "invite", "email_change", "undo"])
def test_link_is_refused_for_other_types(client, message, alice, type):
    assert fragment(follow(client, type, message.token))["error_code"] == "otp_expired"
    assert hand_in(client, type, message.token).status_code in (400, 403)
    if type != "undo":
        assert_error(type_in(client, type, alice.email, message.code), 403, "otp_expired")
    assert_signs_in(client, "recovery", message.token)


def test_unknown_address_gets_the_same_response_without_a_message(client, outbox, database):
    assert_ok(client.post("/recover", json={"email": "dave@example.com", "create_user": True}), ON_ITS_WAY)
    assert (outbox.sent(), outbox.suppressed(), database.count("users")) == ([], 1, 0)


def test_banned_user_is_sent_nothing(client, alice, outbox, database):
    database.run("UPDATE users SET banned_until = 'infinity'")
    assert_ok(client.post("/recover", json={"email": alice.email}), ON_ITS_WAY)
    assert (outbox.sent(), outbox.suppressed()) == ([], 1)


def test_user_without_a_password_can_recover(client, service_role, outbox):
    client.post(
        "/admin/users", json={"email": "erin@example.com", "email_confirm": True}, headers=service_role
    )
    client.post("/recover", json={"email": "erin@example.com"})
    session = assert_signs_in(client, "recovery", outbox.last().token)
    assert session.put("/user", json={"password": NEW}).status_code == 200


@cases(
    ("body", "details"),
    [
        ({}, "email: is required"),
        ({"phone": PHONE}, "email: is required"),
        ({"email": 1}, "email: must be a string"),
        ({"email": "alice@"}, A_SENTENCE),
    ],
)
def test_invalid_body_is_400(client, database, body, details):
    assert_error(client.post("/recover", json=body), 400, "validation_failed", details=details)
    assert database.count("outbox") == 0


def test_recovery_works_when_attackers_used_up_the_password_tries(make_app, alice, outbox):
    """ACCOUNT_FAILURES: an attacker cannot lock the user out, because a link makes the user's network known."""
    client = make_app(
        AUTH_RATE_LIMITS_ENABLED="true",
        AUTH_RATE_LIMIT_ACCOUNT_FAILURES="3 per day",
        AUTH_RATE_LIMIT_LOGIN="1000 per minute",
    ).test_client()
    stranger, home = {"REMOTE_ADDR": "203.0.113.7"}, {"REMOTE_ADDR": "198.51.100.9"}
    wrong = {"email": alice.email, "password": "Wrong-Horse-1"}
    for _ in range(4):
        client.post("/token?grant_type=password", json=wrong, environ_overrides=stranger)
    right = {"email": alice.email, "password": "Correct-Horse-1"}
    assert_error(
        client.post("/token?grant_type=password", json=right, environ_overrides=home),
        429,
        "over_request_rate_limit",
    )
    client.post("/recover", json={"email": alice.email}, environ_overrides=home)
    tokens = fragment(
        client.get(path("recovery", outbox.last().token, redirect_to=SITE), environ_overrides=home)
    )
    assert Session(client, tokens["access_token"], "", {}).get("/user").status_code == 200
    assert client.post("/token?grant_type=password", json=right, environ_overrides=home).status_code == 200
