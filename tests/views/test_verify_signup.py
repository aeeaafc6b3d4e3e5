"""GET /verify with the link of a sign-up: the address is confirmed, and who opened the link is signed in."""

from urllib.parse import parse_qs, urlsplit

import pytest

from tests.support.answers import A_REFRESH_TOKEN, A_SENTENCE, A_TIMESTAMP, AN_ACCESS_TOKEN, ANYTHING, assert_error, identity, user
from tests.support.cast import PASSWORD, Session, session_of, sign_in
from tests.support.server import at_once

DAVE = {"email": "dave@example.com", "password": PASSWORD}
SITE = "http://localhost:8000"
FAILED = {"error": "access_denied", "error_code": "otp_expired", "error_description": "The link or code is invalid or has expired"}


@pytest.fixture
def link(client, mailbox):
    """The link of a sign-up that waits for its confirmation."""
    client.post("/signup", json=DAVE)
    return mailbox.link_for("dave@example.com")


def fragment(response, target=SITE):
    """Return what a redirect to a target carries in its fragment."""
    assert (response.status_code, response.data) == (303, b"")
    url, _, parameters = response.location.partition("#")
    assert url == target
    values = parse_qs(parameters, strict_parsing=True, keep_blank_values=True)
    assert all(len(value) == 1 for value in values.values())
    return {name: value[0] for name, value in values.items()}


def open_link(client, link):
    """Return the session that a link signs in to."""
    tokens = fragment(client.get(link))
    return Session(client, tokens["access_token"], tokens["refresh_token"], {})


def changed(link, **parameters):
    """Return the path and query of a link with other parameters; None takes one away."""
    parts = urlsplit(link)
    query = {name: value[0] for name, value in parse_qs(parts.query).items()} | parameters
    return parts.path, {name: value for name, value in query.items() if value is not None}


def assert_unspent(client, database, link, before):
    assert database.everything() == before
    assert open_link(client, link).get("/user").status_code == 200


class TestAGoodLink:
    def test_it_leads_to_the_site_with_tokens(self, client, link):
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

    def test_it_confirms_the_email_and_signs_in(self, client, link, database):
        session = open_link(client, link)
        confirmed = user(
            "dave@example.com",
            confirmation_sent_at=A_TIMESTAMP,
            last_sign_in_at=A_TIMESTAMP,
            identities=[identity("email", "dave@example.com", last_sign_in_at=A_TIMESTAMP)],
        )
        assert session.get("/user").json == confirmed
        assert database.one("SELECT email_proved, email_confirmed_at <= now() AS confirmed FROM users") == (True, True)
        assert session.claims["amr"] == [{"method": "otp", "timestamp": session.claims["iat"]}]
        assert session.refresh().status_code == 200

    def test_the_password_is_good_from_then_on(self, client, link):
        assert_error(sign_in(client, "dave@example.com"), 403, "email_not_confirmed")
        client.get(link)
        assert sign_in(client, "dave@example.com").status_code == 200

    def test_the_answer_is_neither_kept_nor_passed_on(self, client, link):
        response = client.get(link)
        assert response.headers["Cache-Control"] == "no-store"
        assert response.headers["Referrer-Policy"] == "no-referrer"

    def test_it_is_stored_as_a_hash(self, link, database):
        token = changed(link)[1]["token"]
        assert len(token) == 43
        assert token not in str(database.everything())

    def test_the_type_email_spends_it_too(self, client, link):
        path, query = changed(link, type="email")
        assert fragment(client.get(path, query_string=query))["access_token"] == AN_ACCESS_TOKEN


class TestWhereItLeads:
    @pytest.fixture
    def client(self, make_app):
        changes = {"AUTH_SITE_URL": "https://app.example.com/start", "AUTH_REDIRECT_ALLOW_LIST": "https://*.preview.example.com/**,myapp://callback"}
        return make_app(**changes).test_client()

    @pytest.mark.parametrize(
        "target", ["https://app.example.com/welcome?x=1&y=2", "https://pr-7.preview.example.com/a/b", "myapp://callback", "https://app.example.com"]
    )
    def test_to_an_allowed_target(self, client, link, target):
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
    def test_to_the_site_instead_of_any_other(self, client, link, target):
        path, query = changed(link, redirect_to=target)
        assert fragment(client.get(path, query_string=query), "https://app.example.com/start")["access_token"] == AN_ACCESS_TOKEN

    def test_with_a_failure_too(self, client, link):
        path, query = changed(link, token="x" * 43, redirect_to="https://app.example.com/welcome")
        assert fragment(client.get(path, query_string=query), "https://app.example.com/welcome") == FAILED
        path, query = changed(link, token="x" * 43, redirect_to="https://evil.example")
        assert fragment(client.get(path, query_string=query), "https://app.example.com/start") == FAILED


class TestABadLink:
    def test_it_refuses_a_spent_link(self, client, link, database):
        client.get(link)
        before = database.everything()
        assert fragment(client.get(link)) == FAILED
        assert database.everything() == before

    def test_it_refuses_an_expired_link(self, client, link, database):
        database.run("UPDATE one_time_tokens SET expires_at = now()")
        before = database.everything()
        assert fragment(client.get(link)) == FAILED
        assert database.everything() == before

    def test_a_link_lives_an_hour(self, client, link, database):
        database.run("UPDATE one_time_tokens SET expires_at = expires_at - interval '59 minutes 50 seconds'")
        assert open_link(client, link).get("/user").status_code == 200
        assert database.count("one_time_tokens", "spent_at IS NULL") == 0

    @pytest.mark.parametrize("token", ["x" * 43, "", "x", "x" * 44, "x" * 2000, "é" * 43, "' OR 1=1 --"])
    def test_it_refuses_an_unknown_token(self, client, link, database, token):
        before = database.everything()
        path, query = changed(link, token=token)
        assert fragment(client.get(path, query_string=query)) == FAILED
        assert_unspent(client, database, link, before)

    @pytest.mark.parametrize("change", [str.swapcase, lambda token: token + "=", lambda token: token[:-1], lambda token: " " + token])
    def test_it_refuses_another_spelling(self, client, link, database, change):
        before = database.everything()
        path, query = changed(link, token=change(changed(link)[1]["token"]))
        assert fragment(client.get(path, query_string=query)) == FAILED
        assert_unspent(client, database, link, before)

    @pytest.mark.parametrize("type", ["recovery", "invite", "magiclink", "email_change", "sms", "nonsense", "", "SIGNUP"])
    def test_a_link_serves_its_own_type(self, client, link, database, type):
        before = database.everything()
        path, query = changed(link, type=type)
        assert fragment(client.get(path, query_string=query)) == FAILED
        assert_unspent(client, database, link, before)

    @pytest.mark.parametrize("name", ["token", "type"])
    def test_a_missing_parameter_is_400(self, client, link, database, name):
        before = database.everything()
        path, query = changed(link, **{name: None})
        assert_error(client.get(path, query_string=query), 400, "validation_failed", details=f"{name}: is required")
        assert_unspent(client, database, link, before)

    @pytest.mark.parametrize("name", ["token", "type", "redirect_to"])
    def test_a_repeated_parameter_is_400(self, client, link, database, name):
        before = database.everything()
        assert_error(client.get(f"{link}&{name}=x&{name}=x"), 400, "validation_failed", details=f"{name}: must be given once")
        assert_unspent(client, database, link, before)

    @pytest.mark.parametrize("name", ["token", "type", "redirect_to"])
    def test_a_nul_is_400(self, client, link, database, name):
        before = database.everything()
        path, query = changed(link, **{name: "x\0"})
        assert_error(client.get(path, query_string=query), 400, "validation_failed", details=A_SENTENCE)
        assert_unspent(client, database, link, before)

    def test_it_refuses_a_link_for_an_address_that_was_changed_since(self, client, link, database):
        database.run("UPDATE users SET email = 'other@example.com'")
        before = database.everything("users", "identities", "sessions")
        assert fragment(client.get(link)) == FAILED
        assert database.everything("users", "identities", "sessions") == before

    def test_a_banned_user_is_not_signed_in(self, client, link, database):
        database.run("UPDATE users SET banned_until = now() + interval '1 day'")
        response = fragment(client.get(link))
        assert response["error"] == "access_denied"
        assert response["error_code"] in ("otp_expired", "user_banned")
        assert database.count("sessions") == 0

    def test_it_refuses_the_link_of_a_deleted_user(self, client, link, database):
        database.run("DELETE FROM users")
        assert fragment(client.get(link)) == FAILED


class TestLooking:
    """Scanners of mail look at links before people do."""

    def test_head_spends_nothing(self, client, link, database):
        before = database.everything()
        response = client.head(link)
        assert (response.status_code, response.data) in ((200, b""), (303, b""))
        assert "access_token" not in response.headers.get("Location", "")
        assert_unspent(client, database, link, before)

    def test_options_spends_nothing(self, client, link, database):
        before = database.everything()
        assert client.options(link).status_code == 200
        assert_unspent(client, database, link, before)


class TestProof:
    """When an email is first proved, what was there before and is not proved by it goes."""

    @pytest.fixture
    def client(self, make_app):
        return make_app(AUTH_EMAIL_CONFIRM_REQUIRED="false").test_client()

    def test_sessions_of_before_end(self, client, link, database):
        # Mallory has signed up with Dave's address, and is signed in. Dave opens the link.
        before = session_of(client, sign_in(client, "dave@example.com"))
        after = open_link(client, link)
        assert_error(before.get("/user"), 401, "session_not_found")
        assert_error(before.refresh(), 400, "refresh_token_not_found")
        assert after.get("/user").status_code == 200

    def test_a_phone_and_pending_changes_of_before_are_gone(self, client, link, database):
        session = session_of(client, sign_in(client, "dave@example.com"))
        session.put("/user", json={"email": "mallory@example.com", "phone": "+491701234567"})
        database.run("UPDATE users SET phone = '+491707654321', phone_confirmed_at = now()")
        after = open_link(client, link).get("/user").json
        assert (after["new_email"], after["new_phone"], after["phone"], after["phone_confirmed_at"]) == (None, None, None, None)

    def test_other_links_of_before_are_void(self, client, link, database):
        database.run(
            """INSERT INTO one_time_tokens (id, user_id, purpose, token_hash, target, expires_at)
               SELECT gen_random_uuid(), id, 'email_change', '\\x00', 'mallory@example.com', now() + interval '1 hour' FROM users"""
        )
        client.get(link)
        assert database.count("one_time_tokens", "spent_at IS NULL") == 0

    def test_the_password_stays_for_its_own_sign_up_proved_it(self, client, link):
        client.get(link)
        assert sign_in(client, "dave@example.com").status_code == 200


class TestAtOnce:
    def test_of_fifty_one_spends_it(self, server, link, database):
        answers = at_once(50, lambda _: fragment(server.get(link)))
        assert len([answer for answer in answers if "access_token" in answer]) == 1
        assert [answer for answer in answers if "access_token" not in answer] == [FAILED] * 49
        assert database.count("sessions") == 1

    def test_of_a_link_and_a_password_change_none_stops_the_other(self, make_app, mailbox, database):
        app = make_app(AUTH_EMAIL_CONFIRM_REQUIRED="false")
        client = app.test_client()
        made = client.post("/signup", json=DAVE).json
        link = mailbox.link_for("dave@example.com")
        session = session_of(client, sign_in(client, "dave@example.com"))
        with database.locked("users", made["id"]) as lock:
            change = lock.start(lambda: session.on(app.test_client()).put("/user", json={"password": "Another-Horse-1"}))
            verify = lock.start(lambda: app.test_client().get(link))
        assert change.result().status_code in (200, 401)
        assert verify.result().status_code == 303
