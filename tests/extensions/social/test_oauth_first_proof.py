"""The first proof of an address by a provider removes the access of an attacker who signed up with it.

Mallory signs up with Alice's address and waits for Alice to sign in with Google ("pre-hijacking", Sudhodanan
and Paverd, 2022). After that, Mallory must have no password, session, identity, code or link that works.
"""

import pytest

from tests.support.answers import A_TIMESTAMP, ANYTHING, assert_error, identity
from tests.support.links import VERIFIER, WITH_CHALLENGE, assert_dead, hand_in
from tests.support.oauth import external, fragment, link, profile_metadata, query
from tests.support.users import MALLORY, PASSWORD, Session, session_of, sign_in

pytest_plugins = ["tests.support.oauth_fixtures"]
EMAIL = "alice@example.com"
MALLORYS_SIGN_UP = {"email": EMAIL, "password": PASSWORD, "data": {"name": "Not Alice"}}
ALICES_IDENTITY = external("google", "alice-at-google", EMAIL, True, **profile_metadata(name="Alice"))


@pytest.fixture(autouse=True)
def _people(google, github) -> None:
    google.person = {"sub": "alice-at-google", "email": EMAIL, "email_verified": True, "name": "Alice"}
    github.be(666, MALLORY)


@pytest.fixture
def lax_service(make_service):
    """A service that does not require confirmation: a sign-up is signed in at once."""
    return make_service(AUTH_EMAIL_CONFIRM_REQUIRED="false", AUTH_REAUTHENTICATION_AGE="never")


@pytest.fixture
def mallory(lax_service) -> Session:
    """Mallory, signed in to a user with Alice's unproved address."""
    assert lax_service.client.post("/signup", json=MALLORYS_SIGN_UP).status_code == 201
    return session_of(lax_service.client, sign_in(lax_service.client, EMAIL))


def trade(service, code):
    body = {"auth_code": code, "code_verifier": VERIFIER}
    return service.client.post("/token?grant_type=pkce", json=body)


def test_sign_up_becomes_alices_without_its_password_links_and_a_notice(
    service, client, outbox, mailbox, database
):
    client.post("/signup", json=MALLORYS_SIGN_UP)
    client.post("/recover", json={"email": EMAIL})
    messages = outbox.sent(EMAIL)
    assert [message.kind for message in messages] == ["signup", "recovery"]
    user_id = database.value("SELECT id FROM users")
    user = service.user("google")
    assert (user["id"], user["email"], user["email_confirmed_at"]) == (user_id, EMAIL, A_TIMESTAMP)
    assert user["identities"] == [identity("email", EMAIL), ALICES_IDENTITY]
    assert database.one("SELECT email_proved, password_hash FROM users") == (True, None)
    assert_error(sign_in(client, EMAIL), 401, "invalid_credentials")
    for message in messages:
        assert_dead(client, message.kind, message.token)
    assert outbox.sent(kind="identity_linked") == []
    # The pending links are not sent any more.
    assert mailbox.messages_to(EMAIL) == []


def test_sessions_and_identities_of_mallory_are_removed(lax_service, mallory, google, database):
    fragment(link(lax_service, mallory, "github"))
    alices_person, mallorys_person = (
        google.person,
        {"sub": "mallory-at-google", "email": MALLORY, "email_verified": True},
    )
    google.person = mallorys_person
    fragment(link(lax_service, mallory, "google"))
    google.person = alices_person
    alice = lax_service.user("google")
    assert alice["identities"] == [ANYTHING, ALICES_IDENTITY]
    assert_error(mallory.get("/user"), 401, "session_not_found")
    end_reason = database.value("SELECT end_reason FROM sessions WHERE id = %(id)s", id=mallory.id)
    assert end_reason == "address_proved"
    google.person = mallorys_person
    assert alice["id"] not in {lax_service.user(provider)["id"] for provider in ("google", "github")}


class TestConcurrency:
    """Requests of Mallory that wait for Alice's first proof find the user as it left it."""

    @pytest.fixture
    def wait(self, lax_service, mallory, database):
        """Let Mallory's requests wait for Alice's proof; return Alice's session, and what Mallory gets."""

        def wait(*requests):
            browser = lax_service.browser()
            url = lax_service.return_url(browser, "google")
            with database.locked("users", mallory.claims["sub"]) as lock:
                proof = lock.start(lambda: browser.visit(url))
                waiting = [lock.start(request) for request in requests]
            alice = lax_service.session(proof.result())
            assert [session["current"] for session in alice.get("/sessions").json["data"]] == [True]
            return alice, [each.result() for each in waiting]

        return wait

    def test_waiting_sign_in_by_password_or_authorization_code_fails(self, lax_service, mallory, wait):
        fragment(link(lax_service, mallory, "github"))
        code = query(lax_service.sign_in("github", **WITH_CHALLENGE))["code"]
        _, (by_password, by_code) = wait(
            lambda: sign_in(lax_service.client, EMAIL), lambda: trade(lax_service, code)
        )
        assert_error(by_password, 401, "invalid_credentials")
        assert_error(by_code, 404, "flow_state_not_found")

    def test_waiting_sign_in_by_identity_does_not_reach_alices_user(self, lax_service, mallory, wait):
        fragment(link(lax_service, mallory, "github"))
        browser = lax_service.browser()
        url = lax_service.return_url(browser, "github")
        alice, (page,) = wait(lambda: browser.visit(url))
        if "access_token" in page.url:
            assert lax_service.session(page).claims["sub"] != alice.claims["sub"]


def test_sign_in_by_a_provider_accepts_an_invitation(service, client, service_role, outbox):
    body = {"email": EMAIL, "data": {"team": "red"}}
    invited_user = client.post("/admin/invite", json=body, headers=service_role).json["user"]
    user = service.user("google")
    assert (user["id"], user["user_metadata"]) == (invited_user["id"], {"team": "red"})
    assert_error(hand_in(client, "invite", outbox.last(EMAIL, "invite").token), 403, "otp_expired")
