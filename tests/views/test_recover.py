"""POST /recover: what a link for a lost password allows. test_magiclink.py tests the request and the link."""

from tests.support.answers import assert_error
from tests.support.links import SITE, assert_signs_in, fragment, path
from tests.support.users import PASSWORD, Session

NEW = "Another-Horse-1"


def test_session_started_by_recovery_sets_a_password_without_the_old_one(client, alice, outbox):
    thief = alice.open_session()
    client.post("/recover", json={"email": alice.email})
    session = assert_signs_in(client, "recovery", outbox.last().token)
    assert alice.try_to_sign_in().status_code == 200
    assert session.put("/user", json={"password": NEW}).status_code == 200
    assert_error(thief.get("/user"), 401, "session_not_found")
    assert_error(alice.try_to_sign_in(), 401, "invalid_credentials")
    assert alice.try_to_sign_in(NEW).status_code == 200


def test_user_without_a_password_can_recover(client, service_role, outbox):
    erin = {"email": "erin@example.com"}
    client.post("/admin/users", json=erin | {"email_confirm": True}, headers=service_role)
    client.post("/recover", json=erin)
    session = assert_signs_in(client, "recovery", outbox.last().token)
    assert session.put("/user", json={"password": NEW}).status_code == 200


def test_recovery_works_when_attackers_used_up_the_password_tries(make_app, alice, outbox):
    """ACCOUNT_FAILURES: an attacker cannot lock the user out, because a link makes the user's network known."""
    client = make_app(
        AUTH_RATE_LIMITS_ENABLED="true",
        AUTH_RATE_LIMIT_ACCOUNT_FAILURES="3 per day",
        AUTH_RATE_LIMIT_LOGIN="1000 per minute",
    ).test_client()

    def sign_in(password, ip):
        body = {"email": alice.email, "password": password}
        origin = {"REMOTE_ADDR": ip}
        return client.post("/token?grant_type=password", json=body, environ_overrides=origin)

    stranger, home = "203.0.113.7", "198.51.100.9"
    for _ in range(4):
        sign_in("Wrong-Horse-1", stranger)
    assert_error(sign_in(PASSWORD, home), 429, "over_request_rate_limit")
    at_home = {"environ_overrides": {"REMOTE_ADDR": home}}
    client.post("/recover", json={"email": alice.email}, **at_home)
    opened = client.get(path("recovery", outbox.last().token, redirect_to=SITE), **at_home)
    session = Session(client, fragment(opened)["access_token"], "", {})
    assert session.get("/user").status_code == 200
    assert sign_in(PASSWORD, home).status_code == 200
