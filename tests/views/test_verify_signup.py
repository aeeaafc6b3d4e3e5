"""GET /verify with the link of a sign-up: it confirms the address and signs in."""

from urllib.parse import parse_qs, urlsplit

import pytest

from tests.support.answers import (
    A_REFRESH_TOKEN,
    A_SENTENCE,
    A_TIMESTAMP,
    AN_ACCESS_TOKEN,
    ANYTHING,
    assert_error,
    identity,
    user,
)
from tests.support.cast import PASSWORD, Session, session_of, sign_in
from tests.support.server import at_once

DAVE = {"email": "dave@example.com", "password": PASSWORD}
SITE = "http://localhost:8000"
FAILED = {
    "error": "access_denied",
    "error_code": "otp_expired",
    "error_description": "Token has expired or is invalid",
}


@pytest.fixture
def link(client, mailbox):
    """The link of an unconfirmed sign-up."""
    client.post("/signup", json=DAVE)
    return mailbox.link_for("dave@example.com")


def fragment(response, target=SITE):
    """Return the parameters in the fragment of a redirect to a target."""
    assert (response.status_code, response.data) == (303, b"")
    url, _, parameters = response.location.partition("#")
    assert url == target
    values = parse_qs(parameters, strict_parsing=True, keep_blank_values=True)
    assert all(len(value) == 1 for value in values.values())
    return {name: value[0] for name, value in values.items()}


def open_link(client, link):
    """Open a link and return the session it starts."""
    tokens = fragment(client.get(link))
    return Session(client, tokens["access_token"], tokens["refresh_token"], {})


def changed(link, **parameters):
    """Return the path and query of a link with changed parameters; None removes one."""
    parts = urlsplit(link)
    query = {name: value[0] for name, value in parse_qs(parts.query).items()} | parameters
    return parts.path, {name: value for name, value in query.items() if value is not None}


def assert_unspent(client, database, link, before):
    assert database.everything() == before
    assert open_link(client, link).get("/user").status_code == 200


class TestGoodLink:
    def test_link_redirects_to_the_site_with_tokens(self, client, link):
        response = client.get(link)
        expected = {
            "access_token": AN_ACCESS_TOKEN,
            "token_type": "bearer",
            "expires_in": "3600",
            "expires_at": ANYTHING,
            "refresh_token": A_REFRESH_TOKEN,
            "type": "signup",
        }
        assert fragment(response) == expected
        assert int(fragment(response)["expires_at"]) > 3600

    def test_link_confirms_the_email_and_signs_in(self, client, link, database):
        session = open_link(client, link)
        confirmed = user(
            "dave@example.com",
            confirmation_sent_at=A_TIMESTAMP,
            last_sign_in_at=A_TIMESTAMP,
            identities=[identity("email", "dave@example.com", last_sign_in_at=A_TIMESTAMP)],
        )
        assert session.get("/user").json == confirmed
        assert database.one("SELECT email_proved, email_confirmed_at <= now() AS confirmed FROM users") == (
            True,
            True,
        )
        assert session.claims["amr"] == [{"method": "otp", "timestamp": session.claims["iat"]}]
        assert session.refresh().status_code == 200

    def test_password_signs_in_after_the_link(self, client, link):
        assert_error(sign_in(client, "dave@example.com"), 403, "email_not_confirmed")
        client.get(link)
        assert sign_in(client, "dave@example.com").status_code == 200

    def test_response_is_not_cached_and_sends_no_referrer(self, client, link):
        response = client.get(link)
        assert response.headers["Cache-Control"] == "no-store"
        assert response.headers["Referrer-Policy"] == "no-referrer"

    def test_token_of_the_link_is_stored_as_a_hash(self, link, database):
        token = changed(link)[1]["token"]
        assert len(token) == 43
        assert token not in str(database.everything())

    def test_link_works_with_type_email(self, client, link):
        path, query = changed(link, type="email")
        assert fragment(client.get(path, query_string=query))["access_token"] == AN_ACCESS_TOKEN


class TestRedirectTarget:
    @pytest.fixture
    def client(self, make_app):
        changes = {
            "AUTH_SITE_URL": "https://app.example.com/start",
            "AUTH_REDIRECT_ALLOW_LIST": "https://*.preview.example.com/**,myapp://callback",
        }
        return make_app(**changes).test_client()

    @pytest.mark.parametrize(
        "target",
        [
            "https://app.example.com/welcome?x=1&y=2",
            "https://pr-7.preview.example.com/a/b",
            "myapp://callback",
            "https://app.example.com",
        ],
    )
    def test_link_redirects_to_an_allowed_target(self, client, link, target):
        path, query = changed(link, redirect_to=target)
        assert fragment(client.get(path, query_string=query), target)["access_token"] == AN_ACCESS_TOKEN

    @pytest.mark.parametrize(
        "target",
        [
            "https://evil.example",
            "//evil.example",
            "https://app.example.com@evil.example",
            "javascript:alert(1)",
            "/relative",
            "",
            "myapp://other",
            "https://app.example.com\\@evil.example",
        ],
    )
    def test_link_redirects_to_the_site_instead_of_a_forbidden_target(self, client, link, target):
        path, query = changed(link, redirect_to=target)
        assert (
            fragment(client.get(path, query_string=query), "https://app.example.com/start")["access_token"]
            == AN_ACCESS_TOKEN
        )

    def test_failed_link_redirects_to_an_allowed_target(self, client, link):
        path, query = changed(link, token="x" * 43, redirect_to="https://app.example.com/welcome")
        assert fragment(client.get(path, query_string=query), "https://app.example.com/welcome") == FAILED
        path, query = changed(link, token="x" * 43, redirect_to="https://evil.example")
        assert fragment(client.get(path, query_string=query), "https://app.example.com/start") == FAILED


class TestBadLink:
    def test_spent_link_is_refused(self, client, link, database):
        client.get(link)
        before = database.everything()
        assert fragment(client.get(link)) == FAILED
        assert database.everything() == before

    def test_expired_link_is_refused(self, client, link, database):
        database.run("UPDATE one_time_tokens SET expires_at = now()")
        before = database.everything()
        assert fragment(client.get(link)) == FAILED
        assert database.everything() == before

    def test_link_works_for_an_hour(self, client, link, database):
        database.run("UPDATE one_time_tokens SET expires_at = expires_at - interval '59 minutes 50 seconds'")
        assert open_link(client, link).get("/user").status_code == 200
        assert database.count("one_time_tokens", "spent_at IS NULL") == 0

    @pytest.mark.parametrize("token", ["x" * 43, "", "x", "x" * 44, "x" * 2000, "é" * 43, "' OR 1=1 --"])
    def test_unknown_token_is_refused(self, client, link, database, token):
        before = database.everything()
        path, query = changed(link, token=token)
        assert fragment(client.get(path, query_string=query)) == FAILED
        assert_unspent(client, database, link, before)

    @pytest.mark.parametrize(
        "change",
        [str.swapcase, lambda token: token + "=", lambda token: token[:-1], lambda token: " " + token],
    )
    def test_token_in_another_spelling_is_refused(self, client, link, database, change):
        before = database.everything()
        path, query = changed(link, token=change(changed(link)[1]["token"]))
        assert fragment(client.get(path, query_string=query)) == FAILED
        assert_unspent(client, database, link, before)

    @pytest.mark.parametrize(
        "type", ["recovery", "invite", "magiclink", "email_change", "sms", "nonsense", "", "SIGNUP"]
    )
    def test_link_is_refused_for_another_type(self, client, link, database, type):
        before = database.everything()
        path, query = changed(link, type=type)
        assert fragment(client.get(path, query_string=query)) == FAILED
        assert_unspent(client, database, link, before)

    @pytest.mark.parametrize("name", ["token", "type"])
    def test_missing_parameter_is_400(self, client, link, database, name):
        before = database.everything()
        path, query = changed(link, **{name: None})
        assert_error(
            client.get(path, query_string=query), 400, "validation_failed", details=f"{name}: is required"
        )
        assert_unspent(client, database, link, before)

    @pytest.mark.parametrize("name", ["token", "type", "redirect_to"])
    def test_repeated_parameter_is_400(self, client, link, database, name):
        before = database.everything()
        assert_error(
            client.get(f"{link}&{name}=x&{name}=x"),
            400,
            "validation_failed",
            details=f"{name}: must be given once",
        )
        assert_unspent(client, database, link, before)

    @pytest.mark.parametrize("name", ["token", "type", "redirect_to"])
    def test_nul_character_is_400(self, client, link, database, name):
        before = database.everything()
        path, query = changed(link, **{name: "x\0"})
        assert_error(client.get(path, query_string=query), 400, "validation_failed", details=A_SENTENCE)
        assert_unspent(client, database, link, before)

    def test_link_is_refused_after_the_address_changed(self, client, link, database):
        database.run("UPDATE users SET email = 'other@example.com'")
        before = database.everything("users", "identities", "sessions")
        assert fragment(client.get(link)) == FAILED
        assert database.everything("users", "identities", "sessions") == before

    def test_link_of_a_banned_user_does_not_sign_in(self, client, link, database):
        database.run("UPDATE users SET banned_until = now() + interval '1 day'")
        response = fragment(client.get(link))
        assert response["error"] == "access_denied"
        assert response["error_code"] in ("otp_expired", "user_banned")
        assert database.count("sessions") == 0

    def test_link_of_a_deleted_user_is_refused(self, client, link, database):
        database.run("DELETE FROM users")
        assert fragment(client.get(link)) == FAILED


class TestLinkScanners:
    """Mail scanners request links before the user does."""

    def test_head_does_not_spend_the_link(self, client, link, database):
        before = database.everything()
        response = client.head(link)
        assert (response.status_code, response.data) in ((200, b""), (303, b""))
        assert "access_token" not in response.headers.get("Location", "")
        assert_unspent(client, database, link, before)

    def test_options_does_not_spend_the_link(self, client, link, database):
        before = database.everything()
        assert client.options(link).status_code == 200
        assert_unspent(client, database, link, before)


class TestFirstProof:
    """The first proof of an address removes everything on the account that it does not prove."""

    @pytest.fixture
    def client(self, make_app):
        return make_app(AUTH_EMAIL_CONFIRM_REQUIRED="false").test_client()

    def test_first_proof_ends_earlier_sessions(self, client, link, database):
        # Mallory signed up with Dave's address and is signed in; Dave opens the link.
        before = session_of(client, sign_in(client, "dave@example.com"))
        after = open_link(client, link)
        assert_error(before.get("/user"), 401, "session_not_found")
        assert_error(before.refresh(), 400, "refresh_token_not_found")
        assert after.get("/user").status_code == 200

    def test_first_proof_removes_the_phone_and_pending_changes(self, client, link, database):
        session = session_of(client, sign_in(client, "dave@example.com"))
        session.put("/user", json={"email": "mallory@example.com", "phone": "+491701234567"})
        database.run("UPDATE users SET phone = '+491707654321', phone_confirmed_at = now()")
        after = open_link(client, link).get("/user").json
        assert (after["new_email"], after["new_phone"], after["phone"], after["phone_confirmed_at"]) == (
            None,
            None,
            None,
            None,
        )

    def test_first_proof_voids_other_links(self, client, link, database):
        database.run(
            """INSERT INTO one_time_tokens (id, user_id, purpose, token_hash, target, expires_at)
               SELECT gen_random_uuid(), id, 'email_change', '\\x00', 'mallory@example.com', now() + interval '1 hour' FROM users"""
        )
        client.get(link)
        assert database.count("one_time_tokens", "spent_at IS NULL") == 0

    def test_first_proof_keeps_the_password_of_the_confirmed_sign_up(self, client, link):
        client.get(link)
        assert sign_in(client, "dave@example.com").status_code == 200


class TestConcurrency:
    def test_one_of_fifty_concurrent_requests_spends_the_link(self, server, link, database):
        answers = at_once(50, lambda _: fragment(server.get(link)))
        assert len([answer for answer in answers if "access_token" in answer]) == 1
        assert [answer for answer in answers if "access_token" not in answer] == [FAILED] * 49
        assert database.count("sessions") == 1

    def test_link_and_password_change_do_not_deadlock(self, make_app, mailbox, database):
        app = make_app(AUTH_EMAIL_CONFIRM_REQUIRED="false")
        client = app.test_client()
        made = client.post("/signup", json=DAVE).json
        link = mailbox.link_for("dave@example.com")
        session = session_of(client, sign_in(client, "dave@example.com"))
        with database.locked("users", made["id"]) as lock:
            change = lock.start(
                lambda: session.on(app.test_client()).put("/user", json={"password": "Another-Horse-1"})
            )
            verify = lock.start(lambda: app.test_client().get(link))
        assert change.result().status_code in (200, 401)
        assert verify.result().status_code == 303
