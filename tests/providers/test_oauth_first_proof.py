"""The first proof of an address by a provider removes the access of an attacker who signed up with it.

Mallory signs up with Alice's address and waits for Alice to sign in with Google ("pre-hijacking", Sudhodanan
and Paverd, 2022). After that, Mallory must have no password, session, identity, code or link that works.
"""

import pytest

from tests.support.answers import A_TIMESTAMP, assert_error, identity
from tests.support.cast import PASSWORD, Session, session_of, sign_in
from tests.support.links import PHONE, VERIFIER, WITH_CHALLENGE
from tests.support.links import fragment as link_fragment
from tests.support.oauth import assert_failed, begin_linking, external, fragment, link, query

pytest_plugins = ["tests.support.oauth_fixtures"]
EMAIL = "alice@example.com"
MALLORYS = {"email": EMAIL, "password": PASSWORD, "data": {"name": "Not Alice"}}


@pytest.fixture(autouse=True)
def _people(google, github) -> None:
    google.person = {"sub": "alice-at-google", "email": EMAIL, "email_verified": True, "name": "Alice"}
    github.be(666, "mallory@evil.example")


@pytest.fixture
def lax(make_service):
    """A service that does not require confirmation: a sign-up is signed in at once."""
    return make_service(AUTH_EMAIL_CONFIRM_REQUIRED="false", AUTH_REAUTHENTICATION_AGE="never")


@pytest.fixture
def mallory(lax) -> Session:
    """Mallory, signed in to a user with Alice's unproved address."""
    assert lax.client.post("/signup", json=MALLORYS).status_code == 201
    return session_of(lax.client, sign_in(lax.client, EMAIL))


def come(service) -> Session:
    """Sign Alice in with Google."""
    return service.signed_in("google")


class TestUnconfirmedSignUp:
    def test_password_of_the_sign_up_is_removed(self, service, client):
        client.post("/signup", json=MALLORYS)
        come(service)
        assert_error(sign_in(client, EMAIL), 401, "invalid_credentials")

    def test_user_of_the_sign_up_becomes_alices(self, service, client, database):
        client.post("/signup", json=MALLORYS)
        user_id = database.value("SELECT id FROM users")
        user = come(service).get("/user").json
        assert (user["id"], user["email"], user["email_confirmed_at"]) == (user_id, EMAIL, A_TIMESTAMP)
        assert user["identities"] == [
            identity("email", EMAIL),
            external("google", "alice-at-google", EMAIL, True, name="Alice"),
        ]
        assert database.one("SELECT email_proved, password_hash FROM users") == (True, None)

    def test_links_of_the_sign_up_are_void(self, service, client, outbox):
        client.post("/signup", json=MALLORYS)
        client.post("/recover", json={"email": EMAIL})
        tokens = [(message.kind, message.token) for message in outbox.sent(EMAIL)]
        assert [kind for kind, _ in tokens] == ["signup", "recovery"]
        come(service)
        for kind, token in tokens:
            assert_error(client.post("/verify", json={"type": kind, "token_hash": token}), 403, "otp_expired")
            assert (
                link_fragment(client.get(f"/verify?type={kind}&token={token}"))["error_code"] == "otp_expired"
            )

    def test_alice_is_mailed_a_notice(self, service, client, outbox):
        client.post("/signup", json=MALLORYS)
        come(service)
        assert [message.to for message in outbox.sent(kind="identity_linked")] == [EMAIL]

    def test_id_token_grant_has_the_same_effect(self, service, client, google):
        client.post("/signup", json=MALLORYS)
        response = service.client.post(
            "/token?grant_type=id_token", json={"provider": "google", "id_token": google.id_token()}
        )
        assert response.status_code == 200
        assert_error(sign_in(client, EMAIL), 401, "invalid_credentials")

    def test_apple_and_github_have_the_same_effect(self, service, client, fakes):
        client.post("/signup", json=MALLORYS)
        fakes.github.be(1001, EMAIL)
        service.signed_in("github")
        assert_error(sign_in(client, EMAIL), 401, "invalid_credentials")

    @pytest.mark.parametrize("verified", [False, "false", None, 0])
    def test_unverified_address_takes_nothing_over(self, service, client, google, database, verified):
        client.post("/signup", json=MALLORYS)
        before = database.everything("users", "one_time_tokens")
        google.person["email_verified"] = verified
        assert come(service).get("/user").json["email"] is None
        after = database.everything("users", "one_time_tokens")
        assert [row for row in before["users"] if row not in after["users"]] == []
        assert after["one_time_tokens"] == before["one_time_tokens"]

    def test_untrusted_provider_takes_nothing_over(self, service, client, acme, database):
        client.post("/signup", json=MALLORYS)
        acme.person = {"sub": "x", "email": EMAIL, "email_verified": True}
        assert service.signed_in("acme").get("/user").json["email"] is None
        assert database.value(
            "SELECT password_hash IS NOT NULL FROM users WHERE email = %(email)s", email=EMAIL
        )

    def test_banned_sign_up_is_unchanged(self, service, client, database):
        client.post("/signup", json=MALLORYS)
        database.run("UPDATE users SET banned_until = 'infinity'")
        before = database.everything("users", "identities", "one_time_tokens")
        assert_failed(service.sign_in("google"), "user_banned")
        assert database.everything("users", "identities", "one_time_tokens") == before


class TestAutoconfirmedUser:
    def test_sessions_end(self, make_service):
        service = make_service(AUTH_AUTOCONFIRM="true")
        response = service.client.post("/signup", json=MALLORYS)
        mallory = Session(service.client, response.json["access_token"], response.json["refresh_token"], {})
        assert mallory.get("/user").json["email_confirmed_at"] is not None
        come(service)
        assert_error(mallory.get("/user"), 401, "session_not_found")
        assert_error(mallory.refresh(), 400, "refresh_token_not_found")
        assert_error(sign_in(service.client, EMAIL), 401, "invalid_credentials")


class TestUserOfMallory:
    def test_sessions_of_mallory_end(self, lax, mallory, database):
        other = session_of(lax.client, sign_in(lax.client, EMAIL))
        alice = come(lax)
        for session in (mallory, other):
            assert_error(session.get("/user"), 401, "session_not_found")
            assert_error(session.refresh(), 400, "refresh_token_not_found")
        assert alice.get("/user").status_code == 200
        assert database.all("SELECT DISTINCT end_reason FROM sessions WHERE ended_at IS NOT NULL") == [
            ("address_proved",)
        ]

    def test_password_of_mallory_is_removed_however_it_was_set(self, lax, mallory):
        mallory.put("/user", json={"password": "Another-Horse-2", "current_password": PASSWORD})
        come(lax)
        for password in (PASSWORD, "Another-Horse-2"):
            assert_error(sign_in(lax.client, EMAIL, password), 401, "invalid_credentials")

    def test_identities_of_mallory_are_removed(self, lax, mallory, database):
        fragment(link(lax, mallory, "github"))
        alice = come(lax).get("/user").json
        assert alice["app_metadata"]["providers"] == ["email", "google"]
        hers = lax.signed_in("github").get("/user").json
        assert (hers["id"] != alice["id"], hers["email"]) == (True, "mallory@evil.example")

    def test_identity_of_mallory_at_the_same_provider_is_removed(self, lax, mallory, google):
        alices, google.person = (
            google.person,
            {"sub": "mallory-at-google", "email": "mallory@evil.example", "email_verified": True},
        )
        fragment(link(lax, mallory, "google"))
        google.person = alices
        alice = come(lax).get("/user").json
        assert alice["identities"][1] == external("google", "alice-at-google", EMAIL, True, name="Alice")
        google.person = {"sub": "mallory-at-google", "email": "mallory@evil.example", "email_verified": True}
        assert lax.signed_in("google").get("/user").json["id"] != alice["id"]

    def test_phone_of_mallory_is_removed(self, lax, mallory, outbox):
        mallory.put("/user", json={"phone": PHONE})
        response = lax.client.post(
            "/verify", json={"type": "phone_change", "phone": PHONE, "token": outbox.last(PHONE).code}
        )
        assert response.status_code == 200
        alice = come(lax).get("/user").json
        assert (alice["phone"], alice["phone_confirmed_at"], alice["app_metadata"]["providers"]) == (
            None,
            None,
            ["email", "google"],
        )
        asked = lax.client.post("/otp", json={"phone": PHONE, "create_user": False})
        assert (asked.status_code, outbox.sent(PHONE, "sms")) == (200, [])

    def test_pending_changes_of_mallory_are_removed(self, lax, mallory, outbox):
        mallory.put("/user", json={"email": "mallory@evil.example", "phone": PHONE})
        by_mail, by_sms = outbox.last("mallory@evil.example"), outbox.last(PHONE)
        alice = come(lax)
        assert_error(
            lax.client.post("/verify", json={"type": "email_change", "token_hash": by_mail.token}),
            403,
            "otp_expired",
        )
        assert_error(
            lax.client.post("/verify", json={"type": "phone_change", "phone": PHONE, "token": by_sms.code}),
            403,
            "otp_expired",
        )
        user = alice.get("/user").json
        assert (user["email"], user["phone"], user["new_email"], user["new_phone"]) == (
            EMAIL,
            None,
            None,
            None,
        )

    def test_unredeemed_authorization_code_of_mallory_is_void(self, lax, mallory):
        fragment(link(lax, mallory, "github"))
        code = query(lax.sign_in("github", **WITH_CHALLENGE))["code"]
        alice = come(lax)
        response = lax.client.post(
            "/token?grant_type=pkce", json={"auth_code": code, "code_verifier": VERIFIER}
        )
        assert_error(response, 404, "flow_state_not_found")
        assert [session["current"] for session in alice.get("/sessions").json["data"]] == [True]

    def test_sign_in_begun_by_mallory_creates_a_user_of_her_own(self, lax, mallory):
        fragment(link(lax, mallory, "github"))
        browser = lax.browser()
        url = lax.return_url(browser, "github")
        alice = come(lax).get("/user").json
        assert lax.session(browser.visit(url)).get("/user").json["id"] != alice["id"]

    def test_linking_begun_by_mallory_is_refused(self, lax, mallory):
        page, agreed = lax.browser(), lax.browser()
        page.visit(begin_linking(lax, mallory, "github"))
        agreed.visit(begin_linking(lax, mallory, "github"))
        agreed.submit(stop=lax.is_callback)
        come(lax)
        assert page.submit().status == 403
        assert_failed(agreed.visit(agreed.page.url), "session_not_found")


class TestConcurrency:
    """Requests of Mallory that wait for Alice's first proof find the user as it left it."""

    def test_waiting_sign_in_by_password_fails(self, lax, mallory, database):
        browser = lax.browser()
        url = lax.return_url(browser, "google")
        with database.locked("users", mallory.claims["sub"]) as lock:
            alice = lock.start(lambda: browser.visit(url))
            hers = lock.start(lambda: sign_in(lax.client, EMAIL))
        assert lax.session(alice.result()).get("/user").status_code == 200
        assert_error(hers.result(), 401, "invalid_credentials")

    def test_waiting_sign_in_by_identity_does_not_reach_alices_user(self, lax, mallory, database):
        fragment(link(lax, mallory, "github"))
        browser, other = lax.browser(), lax.browser()
        url, hers = lax.return_url(browser, "google"), lax.return_url(other, "github")
        with database.locked("users", mallory.claims["sub"]) as lock:
            alice = lock.start(lambda: browser.visit(url))
            by_github = lock.start(lambda: other.visit(hers))
        user = lax.session(alice.result()).get("/user").json
        page = by_github.result()
        if "access_token" in page.url:
            assert lax.session(page).get("/user").json["id"] != user["id"]
        assert [
            session["current"] for session in lax.session(alice.result()).get("/sessions").json["data"]
        ] == [True]

    def test_waiting_linking_fails(self, lax, mallory, database):
        browser, other = lax.browser(), lax.browser()
        url = lax.return_url(browser, "google")
        other.visit(begin_linking(lax, mallory, "github"))
        hers = other.submit(stop=lax.is_callback).url
        with database.locked("users", mallory.claims["sub"]) as lock:
            alice = lock.start(lambda: browser.visit(url))
            linking = lock.start(lambda: other.visit(hers))
        assert lax.session(alice.result()).get("/user").json["app_metadata"]["providers"] == [
            "email",
            "google",
        ]
        assert_failed(linking.result(), "session_not_found")

    def test_waiting_authorization_code_fails(self, lax, mallory, database):
        fragment(link(lax, mallory, "github"))
        code = query(lax.sign_in("github", **WITH_CHALLENGE))["code"]
        browser = lax.browser()
        url = lax.return_url(browser, "google")
        with database.locked("users", mallory.claims["sub"]) as lock:
            alice = lock.start(lambda: browser.visit(url))
            trade = lock.start(
                lambda: lax.client.post(
                    "/token?grant_type=pkce", json={"auth_code": code, "code_verifier": VERIFIER}
                )
            )
        session = lax.session(alice.result())
        assert trade.result().status_code == 404
        assert [each["current"] for each in session.get("/sessions").json["data"]] == [True]


class TestProvedAddress:
    """A user that proved the address before keeps everything."""

    def test_address_proved_by_the_link_of_the_sign_up_keeps_everything(self, service, client, outbox):
        client.post("/signup", json=MALLORYS)
        response = client.post("/verify", json={"type": "signup", "token_hash": outbox.last(EMAIL).token})
        session = session_of(client, response)
        come(service)
        assert session.get("/user").status_code == 200
        assert sign_in(client, EMAIL).status_code == 200

    def test_address_proved_by_the_provider_keeps_everything(self, service, client, github):
        session = come(service)
        assert session.put("/user", json={"password": PASSWORD}).status_code == 200
        github.be(1001, EMAIL)
        service.signed_in("github")
        assert session.get("/user").json["app_metadata"]["providers"] == ["google", "email", "github"]
        assert sign_in(client, EMAIL).status_code == 200

    def test_address_proved_by_an_administrator_keeps_everything(self, service, alice):
        session = alice.open_session()
        come(service)
        assert session.get("/user").status_code == 200
        assert alice.try_to_sign_in().status_code == 200


def test_sign_in_by_a_provider_accepts_an_invitation(service, client, service_role, outbox):
    invited = client.post(
        "/admin/invite", json={"email": EMAIL, "data": {"team": "red"}}, headers=service_role
    ).json["user"]
    user = come(service).get("/user").json
    assert (user["id"], user["user_metadata"]) == (invited["id"], {"team": "red"})
    assert_error(
        client.post("/verify", json={"type": "invite", "token_hash": outbox.last(EMAIL, "invite").token}),
        403,
        "otp_expired",
    )


def test_pending_link_is_not_sent_after_the_first_proof(service, client, mailbox):
    client.post("/signup", json=MALLORYS)
    come(service)
    (letter,) = mailbox.messages_to(EMAIL)
    assert "/verify" not in letter.text
