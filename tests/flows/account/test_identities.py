"""Linking identities through a confirmation page, and unlinking all but the last way to sign in."""

import re
from typing import Any
from urllib.parse import urlencode, urlsplit

import pytest

from tests.support.answers import A_SENTENCE, A_TIMESTAMP, ANYTHING, assert_error, assert_ok, identity
from tests.support.cases import cases
from tests.support.factors import set_up
from tests.support.fake_provider import Answer
from tests.support.oauth import (
    APPLICATION,
    SITE,
    assert_failed,
    begin_linking,
    external,
    fragment,
    identities_of,
    link,
    profile_metadata,
    single,
)
from tests.support.server import at_once
from tests.support.users import PASSWORD

pytest_plugins = ["tests.support.oauth_fixtures"]
ALICES: dict[str, Any] = {
    "sub": "alice-at-google",
    "email": "alice.liddell@gmail.example",
    "email_verified": True,
    "name": "Alice L.",
}
LINKED = {"message": A_SENTENCE, "type": "identity_linked"}
AUTHORIZE = "/user/identities/authorize"
WITH_GOOGLE = f"{AUTHORIZE}?provider=google"
LAST = (422, "single_identity_not_deletable")
OLD = "UPDATE sessions SET created_at = created_at - interval '15 minutes'"


@pytest.fixture(autouse=True)
def _people(google) -> None:
    google.person = ALICES


@pytest.fixture
def session(service, alice):
    """A session of Alice's, as after a sign-in with her password."""
    return alice.sign_in().on(service.client)


@pytest.fixture
def browser(service, session):
    """A browser on the page of Alice's linking."""
    browser = service.browser()
    browser.visit(begin_linking(service, session, "google"))
    return browser


@pytest.fixture
def callback_url(service, browser):
    """The URL of the callback of Alice's linking."""
    return browser.submit(stop=service.is_callback).url


def flow_of(url: str) -> str:
    return single(urlsplit(url).query)["flow"]


def path_of(session, provider="google"):
    return f"/user/identities/{identities_of(session)[provider]}"


def assert_not_linked(database, google) -> None:
    """Assert that the provider was not called and that nothing is linked."""
    assert ("/authorize" in google.paths(), database.count("identities", "provider <> 'email'")) == (False, 0)


class TestBeginningALinking:
    def test_response_is_the_url_of_a_page_with_an_unbound_flow(self, session, alice, google, database):
        # The provider is not asked.
        google.instead[google.DISCOVERY] = Answer(500)
        response = session.get(f"{WITH_GOOGLE}&redirect_to={APPLICATION}")
        assert_ok(response, {"url": ANYTHING})
        assert re.fullmatch(rf"{SITE}/link-identity\?flow=[\w-]{{43}}", response.json["url"])
        assert "Set-Cookie" not in response.headers
        row = database.one(
            "SELECT user_id, session_id, browser_hash, redirect_to, extract(epoch FROM expires_at - created_at)::int"
            " FROM oauth_flows"
        )
        assert tuple(row) == (alice.id, session.id, None, APPLICATION, 600)
        assert flow_of(response.json["url"]) not in str(database.everything())

    @cases(
        ("parameters", "error_code"),
        [
            *((f"provider={name}", "oauth_provider_not_supported") for name in ("nobody", "email", "phone")),
            ("", "validation_failed"),
            ("provider=google&provider=acme", "validation_failed"),
            ("provider=google&nonce=1&nonce=2", "validation_failed"),
        ],
    )
    def test_invalid_request_or_head_starts_no_flow(self, service, session, database, parameters, error_code):
        assert_error(session.get(f"{AUTHORIZE}?{parameters}"), 400, error_code, details=A_SENTENCE)
        service.client.head(WITH_GOOGLE, headers=session.authorization)
        assert database.count("oauth_flows") == 0


class TestPage:
    def test_page_names_provider_and_user_and_has_no_effect(self, service, session, google, database):
        url = begin_linking(service, session, "google")
        before = database.everything()
        for _ in range(2):
            page = service.browser().visit(url)
        assert (page.status, page.headers["Content-Type"]) == (200, "text/html; charset=utf-8")
        assert "form-action 'self';" in page.headers["Content-Security-Policy"]
        assert "Google" in page.text
        # The address is masked, so that only its owner recognises it.
        assert "@example.com" in page.text
        service.client.head(url.removeprefix(SITE))
        assert database.everything() == before
        assert_not_linked(database, google)

    def test_unknown_flow_or_one_older_than_ten_minutes_is_refused(self, service, browser, database):
        state, url = service.leave(service.browser(), "google")["state"], browser.page.url
        for flow in ("", "x", "x" * 43, "x" * 2048, state):
            page = service.browser().visit(f"{SITE}/link-identity?flow={flow}")
            assert (page.status, page.forms) == (403, [])
        database.run("UPDATE oauth_flows SET expires_at = expires_at - interval '10 minutes'")
        assert browser.submit().status == 403
        assert service.browser().visit(url).status == 403


class TestLinking:
    def test_linked_identity_is_listed_mailed_and_signs_in(self, service, session, alice, database, outbox):
        assert fragment(link(service, session, "google")) == LINKED
        user = session.get("/user").json
        google_identity = external(
            "google", "alice-at-google", ALICES["email"], True, **profile_metadata(name="Alice L.")
        )
        email_identity = identity("email", alice.email, last_sign_in_at=A_TIMESTAMP)
        assert user["identities"] == [email_identity, google_identity | {"last_sign_in_at": None}]
        assert user["app_metadata"] == {"provider": "email", "providers": ["email", "google"]}
        assert (user["email"], user["user_metadata"]) == (alice.email, {})
        # Linking does not sign in.
        assert (database.count("sessions"), database.count("authorization_codes")) == (1, 0)
        assert outbox.kinds() == [("identity_linked", alice.email)]
        assert outbox.last().variables["provider"] == "google"
        assert service.signed_in("google").get("/user").json["id"] == alice.id

    def test_one_of_many_concurrent_submissions_works(self, service, browser):
        browsers = [browser] + [service.browser() for _ in range(5)]
        for other in browsers[1:]:
            other.visit(browser.page.url)
        pages = at_once(6, lambda number: browsers[number].submit(stop=service.is_callback))
        assert sorted(page.status for page in pages) == [0] + [403] * 5


class TestConflicts:
    def test_foreign_or_second_identity_is_not_linked(self, service, session, bob, google, database):
        link(service, session, "google")
        bobs_session = bob.sign_in()
        before = database.everything("identities", "users")
        assert_failed(link(service, bobs_session, "google"), "identity_already_exists")
        for subject in ("another-of-alice", "alice-at-google"):
            google.person = {"sub": subject}
            assert_failed(link(service, session, "google"), "identity_already_exists")
        assert database.everything("identities", "users") == before

    def test_one_of_two_users_gets_an_identity_linked_at_once(
        self, service, browser, callback_url, bob, database
    ):
        bobs_browser = service.browser()
        bobs_browser.visit(begin_linking(service, bob.sign_in(), "google"))
        ways = [(browser, callback_url), (bobs_browser, bobs_browser.submit(stop=service.is_callback).url)]
        pages = at_once(2, lambda number: ways[number][0].visit(ways[number][1]))
        codes = sorted(fragment(page).get("error_code", "") for page in pages)
        assert codes == ["", "identity_already_exists"]
        assert database.count("identities", "provider = 'google'") == 1


class TestMallory:
    """A linking begun by Mallory must not link Alice's identity to Mallory's user."""

    @pytest.fixture
    def url(self, service, mallory):
        """A URL that Mallory sends to Alice, who is signed in at Google and authorized this service before."""
        return begin_linking(service, mallory.sign_in(), "google")

    def test_form_posted_by_another_site_is_refused(self, service, url, google, database):
        for alices_browser in (service.browser(fetch_metadata=True), service.browser(fetch_metadata=False)):
            for has_seen_page in (False, True):
                alices_browser.be_at("https://mallory.example/")
                if has_seen_page:
                    # The page names Mallory's user.
                    page = alices_browser.click(url)
                    assert (page.status, len(page.forms), "@example.com" in page.text) == (200, 1, True)
                    alices_browser.be_at("https://mallory.example/")
                assert alices_browser.post(f"{SITE}/link-identity", {"flow": flow_of(url)}).status == 403
        headers = {"Sec-Fetch-Site": "cross-site", "Origin": "https://mallory.example"}
        response = service.client.post("/link-identity", json={"flow": flow_of(url)}, headers=headers)
        assert (response.status_code, response.json["error_code"]) == (403, "origin_not_allowed")
        assert_not_linked(database, google)

    def test_state_or_flow_of_mallory_is_refused_in_alices_browser(self, service, url, database):
        mallorys_browser, alices_browser = service.browser(), service.browser()
        mallorys_browser.visit(url)
        to_provider = mallorys_browser.submit(stop=lambda url: not url.startswith(SITE)).url
        # Alice opens a link to Google with Mallory's state.
        assert_failed(alices_browser.visit(to_provider), "bad_oauth_state", "invalid_request")
        code = single(urlsplit(service.return_url(alices_browser, "google")).query)["code"]
        forged = f"{service.callback('google')}?{urlencode({'state': flow_of(url), 'code': code})}"
        assert_failed(alices_browser.visit(forged), "bad_oauth_state", "invalid_request")
        assert database.count("identities", "provider <> 'email'") == 0

    def test_sign_in_under_way_does_not_become_a_linking(self, service, url):
        alices_browser = service.browser()
        callback_url = service.return_url(alices_browser, "google")
        alices_browser.visit(url)
        assert (
            service.session(alices_browser.visit(callback_url)).get("/user").json["email"] == ALICES["email"]
        )


class TestChangesDuringALinking:
    """Changes between the page and the callback; tests/extensions/social/test_oauth_state.py has what sign-ins share."""

    def test_linking_fails_if_the_session_adds_the_first_factor(self, session, browser, service, database):
        _app, session = set_up(session)
        assert_failed(browser.submit(), "session_not_found")
        assert database.count("identities") == 1
        assert fragment(link(service, session, "google")) == LINKED

    @pytest.mark.parametrize(
        ("change", "error"),
        [("logout", ["session_not_found"]), ("deletion", ["bad_oauth_state", "invalid_request"])],
    )
    def test_linking_fails_when_the_session_ends_before_the_callback_or_the_button(
        self, service, session, browser, callback_url, database, outbox, change, error
    ):
        other = service.browser()
        other.visit(begin_linking(service, session, "google"))
        response = session.post("/logout") if change == "logout" else session.delete("/user")
        assert response.status_code == 200
        assert other.submit().status == 403
        assert_failed(browser.visit(callback_url), *error)
        assert database.count("identities", "provider <> 'email'") == 0
        assert ("identity_linked", session.user["email"]) not in outbox.kinds()


def test_old_session_needs_reauthentication_to_link(service, session, outbox, database):
    database.run(OLD)
    # The error does not ask for a password, because logs would keep a password in a URL.
    details = (
        "give nonce with the code that GET /reauthenticate sends: this session is too old for this change"
    )
    for message in ("", f"&current_password={PASSWORD}"):
        assert_error(session.get(WITH_GOOGLE + message), 400, "reauthentication_needed", details=details)
    session.get("/reauthenticate")
    message = outbox.last(kind="reauthentication")
    response = session.get(f"{WITH_GOOGLE}&nonce={message.wrong_code}")
    assert_error(response, 400, "reauthentication_not_valid", details=A_SENTENCE)
    assert database.count("oauth_flows") == 0
    assert fragment(link(service, session, "google", nonce=message.code)) == LINKED


class TestUnlinking:
    def test_unlinked_identity_is_gone_mailed_and_does_not_sign_in(self, service, session, alice, outbox):
        link(service, session, "google")
        by_google = service.signed_in("google")
        path = path_of(session)
        assert_ok(session.delete(path), {"message": A_SENTENCE, "timestamp": A_TIMESTAMP})
        assert_error(by_google.get("/user"), 401, "session_not_found")
        assert session.get("/user").json["app_metadata"] == {"provider": "email", "providers": ["email"]}
        assert outbox.kinds()[1:] == [("identity_unlinked", alice.email)]
        assert outbox.last().variables["provider"] == "google"
        assert_error(session.delete(path), 404, "identity_not_found")
        assert fragment(link(service, session, "google")) == LINKED
        assert session.delete(path_of(session)).status_code == 200
        assert service.signed_in("google").get("/user").json["id"] != alice.id

    def test_only_addresses_are_removed_without_manual_linking(
        self, make_service, service, session, database
    ):
        link(service, session, "google")
        restricted = session.on(make_service(AUTH_MANUAL_LINKING="false").client)
        assert_error(restricted.remove_identity("google"), 404, "manual_linking_disabled")
        recent_ids = {
            each["type"]: each["id"] for each in session.get("/user/recent_changes").json["recent_changes"]
        }
        assert_error(
            restricted.put("/user", json={"remove": [recent_ids["identity"]]}), 404, "manual_linking_disabled"
        )
        assert restricted.remove_identity("email").status_code == 200
        assert database.value("SELECT array_agg(provider) FROM identities") == ["google"]

    def test_unknown_or_foreign_identity_is_not_unlinked(self, service, session, mallory, database):
        link(service, session, "google")
        for id in ("00000000-0000-4000-8000-000000000000", "x", "google", "%00", "0" * 37):
            assert_error(session.delete(f"/user/identities/{id}"), 404, "identity_not_found")
        response = mallory.sign_in().on(service.client).delete(path_of(session))
        assert_error(response, 404, "identity_not_found")
        assert database.count("identities", "provider = 'google'") == 1
        assert database.count("identities") == 3

    @pytest.fixture
    def by_twitter(self, service, twitter, google):
        """The session of a user with identities of Twitter and Google, and without an address."""
        session = service.signed_in("twitter")
        google.person = {"sub": "x"}
        link(service, session, "google")
        return session

    def test_last_identity_of_a_known_provider_is_not_unlinked(self, by_twitter, google, make_app, database):
        # The deployment later, without Twitter.
        later = make_app(**google.settings()).test_client()
        assert_error(by_twitter.on(later).delete(path_of(by_twitter)), *LAST)
        twitter_path = path_of(by_twitter, "twitter")
        assert by_twitter.delete(path_of(by_twitter)).status_code == 200
        assert_error(by_twitter.delete(twitter_path), *LAST)
        assert database.count("identities") == 1

    @pytest.mark.parametrize("remover", ["user", "administrator"])
    def test_second_factor_of_a_user_of_an_unknown_provider_is_removed(
        self, by_twitter, make_app, service_role, database, remover
    ):
        """A thief may have added it, and it is not a way to sign in."""
        later = set_up(by_twitter)[1].on(make_app().test_client())
        (id,) = [
            change["id"]
            for change in later.get("/user/recent_changes").json["recent_changes"]
            if change["type"] == "totp"
        ]
        body = {"remove": [id]}
        if remover == "user":
            response = later.put("/user", json=body)
        else:
            path = f"/admin/users/{later.user['id']}"
            response = later.client.put(path, json=body, headers=service_role)
        assert response.status_code == 200, response.text
        assert (database.count("factors"), database.count("identities")) == (0, 2)
