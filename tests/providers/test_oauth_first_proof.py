"""The first proof of an address by a provider removes the access of an attacker who signed up with it.

Mallory signs up with Alice's address and waits for Alice to sign in with Google ("pre-hijacking", Sudhodanan
and Paverd, 2022). After that, Mallory must have no password, session, identity, code or link that works.
"""

import pytest

from tests.support.answers import A_TIMESTAMP, ANYTHING, assert_error, identity
from tests.support.links import PHONE, VERIFIER, WITH_CHALLENGE, assert_dead, hand_in, type_in
from tests.support.oauth import assert_failed, begin_linking, external, fragment, link, query
from tests.support.users import PASSWORD, Session, session_of, sign_in

pytest_plugins = ["tests.support.oauth_fixtures"]
EMAIL, MALLORY = "alice@example.com", "mallory@evil.example"
MALLORYS = {"email": EMAIL, "password": PASSWORD, "data": {"name": "Not Alice"}}
ALICES = external("google", "alice-at-google", EMAIL, True, name="Alice")


@pytest.fixture(autouse=True)
def _people(google, github) -> None:
    google.person = {"sub": "alice-at-google", "email": EMAIL, "email_verified": True, "name": "Alice"}
    github.be(666, MALLORY)


@pytest.fixture
def lax(make_service):
    """A service that does not require confirmation: a sign-up is signed in at once."""
    return make_service(AUTH_EMAIL_CONFIRM_REQUIRED="false", AUTH_REAUTHENTICATION_AGE="never")


@pytest.fixture
def mallory(lax) -> Session:
    """Mallory, signed in to a user with Alice's unproved address."""
    assert lax.client.post("/signup", json=MALLORYS).status_code == 201
    return session_of(lax.client, sign_in(lax.client, EMAIL))


def assert_ended(session: Session) -> None:
    assert_error(session.get("/user"), 401, "session_not_found")
    assert_error(session.refresh(), 400, "refresh_token_not_found")


def trade(service, code):
    body = {"auth_code": code, "code_verifier": VERIFIER}
    return service.client.post("/token?grant_type=pkce", json=body)


class TestUnconfirmedSignUp:
    @pytest.fixture(autouse=True)
    def _signed_up(self, client):
        client.post("/signup", json=MALLORYS)

    def test_user_becomes_alices_without_the_password_and_the_links(self, service, client, outbox, database):
        client.post("/recover", json={"email": EMAIL})
        sent = outbox.sent(EMAIL)
        assert [message.kind for message in sent] == ["signup", "recovery"]
        user_id = database.value("SELECT id FROM users")
        user = service.user("google")
        assert (user["id"], user["email"], user["email_confirmed_at"]) == (user_id, EMAIL, A_TIMESTAMP)
        assert user["identities"] == [identity("email", EMAIL), ALICES]
        assert database.one("SELECT email_proved, password_hash FROM users") == (True, None)
        assert_error(sign_in(client, EMAIL), 401, "invalid_credentials")
        for message in sent:
            assert_dead(client, message.kind, message.token)
        assert [message.to for message in outbox.sent(kind="identity_linked")] == [EMAIL]

    def test_pending_link_is_not_sent_after_the_first_proof(self, service, mailbox):
        service.user("google")
        (letter,) = mailbox.messages_to(EMAIL)
        assert "/verify" not in letter.text

    @pytest.mark.parametrize("way", ["id_token", "github"])
    def test_id_token_and_other_providers_have_the_same_effect(self, service, client, google, github, way):
        if way == "github":
            github.be(1001, EMAIL)
            service.signed_in("github")
        else:
            body = {"provider": "google", "id_token": google.id_token()}
            assert service.client.post("/token?grant_type=id_token", json=body).status_code == 200
        assert_error(sign_in(client, EMAIL), 401, "invalid_credentials")

    @pytest.mark.parametrize(
        ("provider", "verified"),
        [("google", False), ("google", "false"), ("google", None), ("google", 0), ("acme", True)],
    )
    def test_untrusted_address_takes_nothing_over(self, service, fakes, database, provider, verified):
        before = database.everything("users", "one_time_tokens")
        getattr(fakes, provider).person = {"sub": "x", "email": EMAIL, "email_verified": verified}
        assert service.user(provider)["email"] is None
        after = database.everything("users", "one_time_tokens")
        assert [row for row in before["users"] if row not in after["users"]] == []
        assert after["one_time_tokens"] == before["one_time_tokens"]

    def test_banned_sign_up_is_unchanged(self, service, database):
        database.run("UPDATE users SET banned_until = 'infinity'")
        before = database.everything("users", "identities", "one_time_tokens")
        assert_failed(service.sign_in("google"), "user_banned")
        assert database.everything("users", "identities", "one_time_tokens") == before


def test_sessions_of_an_autoconfirmed_user_end(make_service):
    service = make_service(AUTH_AUTOCONFIRM="true")
    mallory = session_of(service.client, service.client.post("/signup", json=MALLORYS), 201)
    assert mallory.get("/user").json["email_confirmed_at"] is not None
    service.user("google")
    assert_ended(mallory)
    assert_error(sign_in(service.client, EMAIL), 401, "invalid_credentials")


class TestUserOfMallory:
    def test_sessions_and_passwords_of_mallory_end(self, lax, mallory, database):
        other = session_of(lax.client, sign_in(lax.client, EMAIL))
        mallory.put("/user", json={"password": "Another-Horse-2", "current_password": PASSWORD})
        other = session_of(lax.client, sign_in(lax.client, EMAIL, "Another-Horse-2"))
        alice = lax.signed_in("google")
        for session in (mallory, other):
            assert_ended(session)
        for password in (PASSWORD, "Another-Horse-2"):
            assert_error(sign_in(lax.client, EMAIL, password), 401, "invalid_credentials")
        assert alice.get("/user").status_code == 200
        reasons = database.all(
            "SELECT end_reason FROM sessions WHERE id = ANY (%(ids)s::uuid[])", ids=[mallory.id, other.id]
        )
        assert {row.end_reason for row in reasons} == {"address_proved"}

    def test_identities_of_mallory_are_removed(self, lax, mallory, google):
        fragment(link(lax, mallory, "github"))
        alices, hers = google.person, {"sub": "mallory-at-google", "email": MALLORY, "email_verified": True}
        google.person = hers
        fragment(link(lax, mallory, "google"))
        google.person = alices
        alice = lax.user("google")
        assert alice["identities"] == [ANYTHING, ALICES]
        google.person = hers
        again = {lax.user(provider)["id"] for provider in ("google", "github")}
        assert alice["id"] not in again

    def test_phone_and_pending_changes_of_mallory_are_removed(self, lax, mallory, outbox):
        mallory.put("/user", json={"phone": PHONE})
        response = type_in(lax.client, "phone_change", PHONE, outbox.last(PHONE).code)
        assert response.status_code == 200
        mallory.put("/user", json={"email": MALLORY, "phone": "+491707654321"})
        by_mail, by_sms = outbox.last(MALLORY), outbox.last("+491707654321")
        alice = lax.signed_in("google")
        assert_error(hand_in(lax.client, "email_change", by_mail.token), 403, "otp_expired")
        response = type_in(lax.client, "phone_change", by_sms.to, by_sms.code)
        assert_error(response, 403, "otp_expired")
        user = alice.get("/user").json
        members = ("email", "phone", "phone_confirmed_at", "new_email", "new_phone")
        assert [user[name] for name in members] == [EMAIL, None, None, None, None]
        assert user["app_metadata"]["providers"] == ["email", "google"]
        sent = len(outbox.sent(PHONE))
        asked = lax.client.post("/otp", json={"phone": PHONE, "create_user": False})
        assert (asked.status_code, len(outbox.sent(PHONE))) == (200, sent)

    def test_unredeemed_authorization_code_of_mallory_is_void(self, lax, mallory):
        fragment(link(lax, mallory, "github"))
        code = query(lax.sign_in("github", **WITH_CHALLENGE))["code"]
        alice = lax.signed_in("google")
        assert_error(trade(lax, code), 404, "flow_state_not_found")
        assert [session["current"] for session in alice.get("/sessions").json["data"]] == [True]

    def test_sign_in_begun_by_mallory_creates_a_user_of_her_own(self, lax, mallory):
        fragment(link(lax, mallory, "github"))
        browser = lax.browser()
        url = lax.return_url(browser, "github")
        alice = lax.user("google")
        assert lax.session(browser.visit(url)).get("/user").json["id"] != alice["id"]

    def test_linking_begun_by_mallory_is_refused(self, lax, mallory):
        page, agreed = lax.browser(), lax.browser()
        for browser in (page, agreed):
            browser.visit(begin_linking(lax, mallory, "github"))
        agreed.submit(stop=lax.is_callback)
        lax.user("google")
        assert page.submit().status == 403
        assert_failed(agreed.visit(agreed.page.url), "session_not_found")


class TestConcurrency:
    """Requests of Mallory that wait for Alice's first proof find the user as it left it."""

    @pytest.fixture
    def wait(self, lax, mallory, database):
        """Let Mallory's request wait for Alice's proof; return the session of Alice, and what Mallory gets."""

        def wait(request):
            browser = lax.browser()
            url = lax.return_url(browser, "google")
            with database.locked("users", mallory.claims["sub"]) as lock:
                proof = lock.start(lambda: browser.visit(url))
                hers = lock.start(request)
            alice = lax.session(proof.result())
            assert [session["current"] for session in alice.get("/sessions").json["data"]] == [True]
            return alice, hers.result()

        return wait

    def test_waiting_sign_in_by_password_fails(self, lax, wait):
        assert_error(wait(lambda: sign_in(lax.client, EMAIL))[1], 401, "invalid_credentials")

    def test_waiting_sign_in_by_identity_does_not_reach_alices_user(self, lax, mallory, wait):
        fragment(link(lax, mallory, "github"))
        browser = lax.browser()
        url = lax.return_url(browser, "github")
        alice, page = wait(lambda: browser.visit(url))
        if "access_token" in page.url:
            assert lax.session(page).claims["sub"] != alice.claims["sub"]

    def test_waiting_linking_fails(self, lax, mallory, wait):
        browser = lax.browser()
        browser.visit(begin_linking(lax, mallory, "github"))
        url = browser.submit(stop=lax.is_callback).url
        alice, page = wait(lambda: browser.visit(url))
        assert alice.get("/user").json["app_metadata"]["providers"] == ["email", "google"]
        assert_failed(page, "session_not_found")

    def test_waiting_authorization_code_fails(self, lax, mallory, wait):
        fragment(link(lax, mallory, "github"))
        code = query(lax.sign_in("github", **WITH_CHALLENGE))["code"]
        assert wait(lambda: trade(lax, code))[1].status_code == 404


class TestProvedAddress:
    """A user that proved the address before keeps everything."""

    def test_address_proved_by_the_link_of_the_sign_up_keeps_everything(self, service, client, outbox):
        client.post("/signup", json=MALLORYS)
        session = session_of(client, hand_in(client, "signup", outbox.last(EMAIL).token))
        service.user("google")
        assert (session.get("/user").status_code, sign_in(client, EMAIL).status_code) == (200, 200)

    def test_address_proved_by_the_provider_keeps_everything(self, service, client, github):
        session = service.signed_in("google")
        assert session.put("/user", json={"password": PASSWORD}).status_code == 200
        github.be(1001, EMAIL)
        service.signed_in("github")
        assert session.get("/user").json["app_metadata"]["providers"] == ["google", "email", "github"]
        assert sign_in(client, EMAIL).status_code == 200

    def test_address_proved_by_an_administrator_keeps_everything(self, service, alice):
        session = alice.open_session()
        service.user("google")
        assert (session.get("/user").status_code, alice.try_to_sign_in().status_code) == (200, 200)


def test_sign_in_by_a_provider_accepts_an_invitation(service, client, service_role, outbox):
    body = {"email": EMAIL, "data": {"team": "red"}}
    invited = client.post("/admin/invite", json=body, headers=service_role).json["user"]
    user = service.user("google")
    assert (user["id"], user["user_metadata"]) == (invited["id"], {"team": "red"})
    assert_error(hand_in(client, "invite", outbox.last(EMAIL, "invite").token), 403, "otp_expired")
