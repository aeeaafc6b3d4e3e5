"""Links requested with a code_challenge: they redirect with a code that is redeemed for tokens (RFC 7636)."""

import pytest

from tests.support.answers import A_SENTENCE, A_TIMESTAMP, assert_error, assert_ok, token_response, user
from tests.support.cases import cases
from tests.support.cast import PASSWORD, session_of
from tests.support.links import (
    BROWSER,
    CHALLENGE,
    EXPIRED,
    ON_ITS_WAY,
    PHONE,
    VERIFIER,
    WITH_CHALLENGE,
    assert_dead,
    assert_signed_in,
    follow,
    fragment,
    hand_in,
    later,
    path,
    press,
    query,
    tokens_for,
    type_in,
)
from tests.support.server import at_once

OTHER_VERIFIER = "another-code-verifier-0123456789-abcdefghijklmn"
APP = "https://app.example.com/in"
GONE = (404, "flow_state_not_found")


@pytest.fixture
def message(client, alice, outbox):
    """A message to Alice whose link gives an authorization code."""
    assert_ok(client.post("/magiclink", json={"email": alice.email} | WITH_CHALLENGE), ON_ITS_WAY)
    return outbox.last()


@pytest.fixture
def code(client, message):
    """The authorization code of Alice's link."""
    return query(follow(client, "magiclink", message.token))["code"]


def exchange(client, code, verifier=VERIFIER):
    return client.post("/token?grant_type=pkce", json={"auth_code": code, "code_verifier": verifier})


class TestLogout:
    """A code is a session that has not begun."""

    @pytest.mark.parametrize("scope", ["global", "others"])
    def test_logout_voids_the_code(self, client, alice, code, database, scope):
        alice.sign_in().post(f"/logout?scope={scope}")
        assert_error(exchange(client, code), 404, "flow_state_not_found")
        assert database.count("sessions", "method = 'otp'") == 0

    def test_logout_of_one_session_keeps_the_code(self, client, alice, code):
        alice.sign_in().post("/logout?scope=local")
        assert exchange(client, code).status_code == 200

    def test_logout_by_an_administrator_voids_the_code(self, client, service_role, alice, code):
        client.post(f"/admin/users/{alice.id}/logout", headers=service_role)
        assert_error(exchange(client, code), 404, "flow_state_not_found")

    def test_logout_keeps_the_codes_of_other_users(self, client, mallory, code):
        mallory.sign_in().post("/logout")
        assert exchange(client, code).status_code == 200

    def test_logout_during_an_exchange_ends_its_session(self, app, client, alice, code, database):
        session = alice.open_session()
        with database.locked("users", alice.id) as lock:
            exchanged = lock.start(lambda: exchange(app.test_client(), code))
            logout = lock.start(lambda: session.on(app.test_client()).post("/logout"))
        assert (exchanged.result().status_code, logout.result().status_code) == (200, 200)
        assert database.count("sessions", "ended_at IS NULL") == 0


class TestRedirect:
    def test_link_redirects_with_a_code_without_tokens(self, client, message, database):
        parameters = query(follow(client, "magiclink", message.token))
        assert list(parameters) == ["code"]
        assert len(parameters["code"]) == 43
        assert (database.count("sessions"), database.count("authorization_codes")) == (0, 1)

    def test_button_of_the_page_redirects_with_a_code(self, client, message, database):
        assert list(query(press(client, "magiclink", message.token))) == ["code"]
        assert database.count("sessions") == 0

    def test_code_is_stored_as_a_hash(self, code, database):
        assert code not in str(database.everything())

    def test_browser_and_head_do_not_spend_the_link(self, client, message, database):
        before = database.everything("one_time_tokens", "authorization_codes", "sessions", "users")
        assert client.get(path("magiclink", message.token), headers=BROWSER).status_code == 200
        client.head(path("magiclink", message.token))
        assert database.everything("one_time_tokens", "authorization_codes", "sessions", "users") == before

    @pytest.mark.parametrize(
        ("target", "led_to"),
        [
            (APP, f"{APP}?code="),
            (f"{APP}?x=1&y=2", f"{APP}?x=1&y=2&code="),
            ("https://app.example.com", "https://app.example.com?code="),
        ],
    )
    def test_redirect_keeps_the_query_of_the_target(self, make_app, alice, outbox, target, led_to):
        client = make_app(AUTH_REDIRECT_ALLOW_LIST="https://app.example.com/**").test_client()
        client.post("/magiclink", json={"email": alice.email, "redirect_to": target} | WITH_CHALLENGE)
        location = follow(client, "magiclink", outbox.last().token).location
        assert location.startswith(led_to)
        assert "#" not in location
        assert exchange(client, location.removeprefix(led_to)).status_code == 200

    def test_link_works_once(self, client, message, code):
        assert_dead(client, "magiclink", message.token)

    def test_failed_link_redirects_with_an_error_in_the_fragment(self, client, message, database):
        later(database, secs=3600)
        assert fragment(follow(client, "magiclink", message.token)) == EXPIRED
        assert database.count("authorization_codes") == 0

    def test_two_links_give_two_codes(self, client, alice, outbox):
        codes = []
        for _ in range(2):
            client.post("/magiclink", json={"email": alice.email} | WITH_CHALLENGE)
            codes.append(query(follow(client, "magiclink", outbox.last().token))["code"])
        assert codes[0] != codes[1]
        assert exchange(client, codes[1]).status_code == 200


class TestRedemption:
    def test_code_returns_the_token_response(self, client, code, alice):
        session = assert_signed_in(
            client, exchange(client, code), user(alice.email, id=alice.id, last_sign_in_at=A_TIMESTAMP)
        )
        assert session.claims["amr"] == [{"method": "otp", "timestamp": session.claims["iat"]}]
        assert session.refresh().status_code == 200

    def test_wrong_verifier_is_400_and_does_not_spend_the_code(self, client, code, database):
        assert_error(exchange(client, code, OTHER_VERIFIER), 400, "bad_code_verifier")
        assert_error(exchange(client, code, VERIFIER.upper()), 400, "bad_code_verifier")
        assert_error(exchange(client, code, VERIFIER + "x"), 400, "bad_code_verifier")
        assert_error(exchange(client, code, CHALLENGE), 400, "bad_code_verifier")
        assert database.count("sessions") == 0
        assert exchange(client, code).status_code == 200

    def test_missing_verifier_is_400(self, client, code, database):
        for body in ({"auth_code": code}, {"auth_code": code, "code_verifier": None}):
            response = client.post("/token?grant_type=pkce", json=body)
            assert_error(response, 400, "validation_failed", details="code_verifier: is required")
        assert database.count("sessions") == 0

    @cases(
        "verifier",
        ["", "short", "x" * 42, "x" * 129, "x" * 42 + " ", "x" * 42 + "é", "x" * 42 + "\n", "x" * 42 + "="],
    )
    def test_malformed_verifier_is_400(self, client, code, verifier):
        assert_error(exchange(client, code, verifier), 400, "validation_failed", details=A_SENTENCE)

    @pytest.mark.parametrize("verifier", [1, ["x" * 43], {}])
    def test_verifier_that_is_not_a_string_is_400(self, client, code, verifier):
        assert_error(
            exchange(client, code, verifier),
            400,
            "validation_failed",
            details="code_verifier: must be a string",
        )

    @cases("code", ["x" * 43, "x", "x" * 500, "é" * 43])
    def test_unknown_code_is_404(self, client, code):
        assert_error(exchange(client, code), *GONE)

    def test_missing_code_is_400(self, client):
        response = client.post("/token?grant_type=pkce", json={"code_verifier": VERIFIER})
        assert_error(response, 400, "validation_failed", details="auth_code: is required")

    def test_form_is_415(self, client, code, database):
        response = client.post("/token?grant_type=pkce", data={"auth_code": code, "code_verifier": VERIFIER})
        assert_error(response, 415, "unsupported_media_type", details=A_SENTENCE)
        assert database.count("sessions") == 0

    def test_code_works_for_five_minutes(self, client, code, database):
        later(database, secs=290)
        assert exchange(client, code).status_code == 200

    def test_code_expires_after_five_minutes(self, client, code, database):
        later(database, secs=300)
        assert_error(exchange(client, code), *GONE)
        assert_error(exchange(client, code, OTHER_VERIFIER), *GONE)
        assert database.count("sessions") == 0

    def test_second_use_ends_the_session_of_the_first(self, client, code, alice, database):
        other = alice.open_session()
        session = session_of(client, exchange(client, code))
        assert_error(exchange(client, code), *GONE)
        assert_error(session.get("/user"), 401, "session_not_found")
        assert_error(session.refresh(), 400, "refresh_token_not_found")
        assert other.get("/user").status_code == 200
        assert (
            database.value("SELECT end_reason FROM sessions WHERE id = %(id)s", id=session.id)
            == "authorization_code_reused"
        )
        assert_error(exchange(client, code), *GONE)
        assert database.count("sessions", "ended_at IS NULL") == 1

    def test_second_use_without_the_verifier_ends_nothing(self, client, code):
        """A code found in a browser's history must not be able to sign its user out."""
        session = session_of(client, exchange(client, code))
        assert_error(exchange(client, code, OTHER_VERIFIER), 400, "bad_code_verifier")
        assert session.get("/user").status_code == 200

    def test_at_most_one_concurrent_use_succeeds_and_the_others_end_its_session(
        self, server, client, code, database
    ):
        answers = at_once(20, lambda _: exchange(server, code))
        assert [answer.status_code for answer in answers].count(200) == 1
        assert {answer.json["error_code"] for answer in answers if answer.status_code != 200} == {
            "flow_state_not_found"
        }
        assert (database.count("sessions"), database.count("sessions", "ended_at IS NULL")) == (1, 0)

    def test_code_is_refused_for_other_grant_types(self, client, code, alice):
        assert_error(
            client.post("/token?grant_type=refresh_token", json={"refresh_token": code}),
            400,
            "refresh_token_not_found",
        )
        assert_error(
            client.post("/token?grant_type=authorization_code", json={"code": code}),
            400,
            "unsupported_grant_type",
            details=A_SENTENCE,
        )
        assert_error(hand_in(client, "magiclink", code), 403, "otp_expired")
        assert_error(type_in(client, "magiclink", alice.email, code), 403, "otp_expired")
        assert client.get("/user", headers={"Authorization": f"Bearer {code}"}).status_code == 401
        assert exchange(client, code).status_code == 200

    def test_verifier_of_another_flow_is_refused(self, client, code, bob, outbox):
        """Mallory cannot have her code redeemed by a victim's application, nor redeem a victim's code."""
        challenge = "E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM"
        verifier = "dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk"
        client.post("/magiclink", json={"email": bob.email, "code_challenge": challenge})
        bobs = query(follow(client, "magiclink", outbox.last().token))["code"]
        assert_error(exchange(client, code, verifier), 400, "bad_code_verifier")
        assert_error(exchange(client, bobs, VERIFIER), 400, "bad_code_verifier")
        assert exchange(client, bobs, verifier).json["user"]["id"] == bob.id

    def test_redeemed_code_ends_the_oldest_session_beyond_the_limit(self, make_app, alice, outbox):
        client = make_app(AUTH_SESSIONS_PER_USER="1").test_client()
        session = alice.sign_in(client=client)
        client.post("/magiclink", json={"email": alice.email} | WITH_CHALLENGE)
        latest = session_of(
            client, exchange(client, query(follow(client, "magiclink", outbox.last().token))["code"])
        )
        assert_error(session.get("/user"), 401, "session_not_found")
        assert latest.get("/user").status_code == 200

    def test_redemption_works_under_the_prefix(self, client, code):
        response = client.post(
            "/auth/v1/token?grant_type=pkce", json={"auth_code": code, "code_verifier": VERIFIER}
        )
        assert (response.status_code, response.json) == (200, token_response(response.json["user"]))


class TestChangesBeforeRedemption:
    """For five minutes a code is worth a session, so everything that ends sessions must void it."""

    def test_ban_voids_the_code(self, client, code, database):
        database.run("UPDATE users SET banned_until = 'infinity'")
        assert_error(exchange(client, code), 403, "user_banned")
        assert database.count("sessions") == 0

    def test_lifted_ban_does_not_revive_the_code(self, client, code, alice, service_role, database):
        client.put(f"/admin/users/{alice.id}", json={"ban_duration": "1h"}, headers=service_role)
        client.put(f"/admin/users/{alice.id}", json={"ban_duration": None}, headers=service_role)
        assert_error(exchange(client, code), *GONE)
        assert database.count("sessions") == 0

    def test_deletion_of_the_user_voids_the_code(self, client, code, alice, service_role):
        client.delete(f"/admin/users/{alice.id}", headers=service_role)
        assert_error(exchange(client, code), *GONE)

    def test_password_change_by_the_user_voids_the_code(self, client, code, alice, database):
        session = alice.open_session()
        assert session.put("/user", json={"password": "Another-Horse-1"}).status_code == 200
        assert_error(exchange(client, code), *GONE)
        assert database.count("sessions", "ended_at IS NULL") == 1

    def test_password_change_by_an_administrator_voids_the_code(
        self, client, code, alice, service_role, database
    ):
        client.put(f"/admin/users/{alice.id}", json={"password": "Another-Horse-1"}, headers=service_role)
        assert_error(exchange(client, code), *GONE)
        assert database.count("sessions") == 0

    def test_email_change_voids_the_code(self, client, code, alice, outbox, database):
        session = alice.open_session()
        session.put("/user", json={"email": "new@example.com"})
        follow(client, "email_change", outbox.last("new@example.com").token)
        assert_error(exchange(client, code), *GONE)
        assert database.count("sessions", "ended_at IS NULL") == 1


class TestRequestsWithAChallenge:
    @pytest.mark.parametrize(
        ("request_for", "body", "type"),
        [
            ("/signup", {"email": "dave@example.com", "password": PASSWORD}, "signup"),
            ("/magiclink", {"email": "alice@example.com"}, "magiclink"),
            ("/otp", {"email": "alice@example.com"}, "magiclink"),
            ("/recover", {"email": "alice@example.com"}, "recovery"),
        ],
    )
    def test_link_gives_a_code_on_each_route(self, client, alice, outbox, request_for, body, type):
        assert client.post(request_for, json=body | WITH_CHALLENGE).status_code in (200, 201)
        message = outbox.last()
        code = query(follow(client, type, message.token))["code"]
        assert_error(exchange(client, code, OTHER_VERIFIER), 400, "bad_code_verifier")
        assert exchange(client, code).json["user"]["email"] == body["email"]

    def test_resend_takes_its_own_challenge(self, client, outbox):
        client.post("/signup", json={"email": "dave@example.com", "password": PASSWORD})
        client.post("/resend", json={"type": "signup", "email": "dave@example.com"} | WITH_CHALLENGE)
        _, second = outbox.sent()
        code = query(follow(client, "signup", second.token))["code"]
        assert exchange(client, code).json["user"]["email"] == "dave@example.com"

    def test_link_requested_without_a_challenge_carries_tokens(self, client, alice, outbox):
        for challenge in (WITH_CHALLENGE, {}):
            client.post("/magiclink", json={"email": alice.email} | challenge)
        _, without = outbox.sent()
        assert fragment(follow(client, "magiclink", without.token)) == tokens_for("magiclink")

    def test_first_proof_with_a_challenge_removes_the_password(self, make_app, outbox):
        client = make_app(AUTH_EMAIL_CONFIRM_REQUIRED="false").test_client()
        client.post("/signup", json={"email": "dave@example.com", "password": "Mallorys-Horse-1"})
        client.post("/magiclink", json={"email": "dave@example.com"} | WITH_CHALLENGE)
        query(follow(client, "magiclink", outbox.last(kind="magiclink").token))
        response = client.post(
            "/token?grant_type=password", json={"email": "dave@example.com", "password": "Mallorys-Horse-1"}
        )
        assert_error(response, 401, "invalid_credentials")

    @pytest.mark.parametrize("method", ["s256", "S256", None])
    def test_challenge_method_is_case_insensitive_and_optional(self, client, alice, outbox, method):
        body = {"email": alice.email, "code_challenge": CHALLENGE} | (
            {"code_challenge_method": method} if method else {}
        )
        assert_ok(client.post("/magiclink", json=body), ON_ITS_WAY)
        assert (
            exchange(client, query(follow(client, "magiclink", outbox.last().token))["code"]).status_code
            == 200
        )

    @cases(
        ("challenge", "details"),
        [
            (
                {"code_challenge": CHALLENGE, "code_challenge_method": "plain"},
                "code_challenge_method: must be s256",
            ),
            (
                {"code_challenge": CHALLENGE, "code_challenge_method": "PLAIN"},
                "code_challenge_method: must be s256",
            ),
            (
                {"code_challenge": CHALLENGE, "code_challenge_method": ""},
                "code_challenge_method: must be s256",
            ),
            (
                {"code_challenge": CHALLENGE, "code_challenge_method": "s512"},
                "code_challenge_method: must be s256",
            ),
            (
                {"code_challenge": CHALLENGE, "code_challenge_method": 256},
                "code_challenge_method: must be a string",
            ),
            ({"code_challenge_method": "s256"}, "code_challenge: must be given with code_challenge_method"),
            ({"code_challenge_method": "plain"}, A_SENTENCE),
            ({"code_challenge": ""}, A_SENTENCE),
            ({"code_challenge": CHALLENGE[:-1]}, A_SENTENCE),
            ({"code_challenge": CHALLENGE + "="}, A_SENTENCE),
            ({"code_challenge": CHALLENGE[:-1] + "+"}, A_SENTENCE),
            ({"code_challenge": CHALLENGE[:-1] + "\n"}, A_SENTENCE),
            ({"code_challenge": [CHALLENGE]}, "code_challenge: must be a string"),
        ],
    )
    def test_invalid_challenge_is_400_on_each_route(self, client, alice, database, challenge, details):
        session = alice.open_session()
        before = database.everything("users", "outbox", "one_time_tokens")
        for request_for, body in (
            ("/signup", {"email": "dave@example.com", "password": PASSWORD}),
            ("/signup", {"phone": PHONE, "password": PASSWORD}),
            ("/magiclink", {"email": alice.email}),
            ("/otp", {"email": alice.email}),
            ("/otp", {"phone": PHONE}),
            ("/recover", {"email": alice.email}),
            ("/resend", {"type": "signup", "email": alice.email}),
        ):
            assert_error(
                client.post(request_for, json=body | challenge), 400, "validation_failed", details=details
            )
        assert_error(
            session.put("/user", json={"email": "new@example.com"} | challenge),
            400,
            "validation_failed",
            details=details,
        )
        assert database.everything("users", "outbox", "one_time_tokens") == before
