"""Linking identities through a confirmation page, and unlinking all but the last way to sign in."""

import re
from typing import Any
from urllib.parse import urlencode, urlsplit

import pytest

from tests.support.answers import A_SENTENCE, A_TIMESTAMP, A_UUID, ANYTHING, assert_error, assert_ok, identity
from tests.support.cases import cases
from tests.support.environment import secret
from tests.support.factors import set_up
from tests.support.fake_provider import Answer
from tests.support.links import CHALLENGE, hand_in
from tests.support.oauth import (
    APPLICATION,
    SITE,
    assert_failed,
    begin_linking,
    external,
    fragment,
    identities_of,
    link,
    single,
)
from tests.support.server import at_once
from tests.support.user_agent import UserAgent
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
def back(service, browser):
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
        ("sent", "error_code"),
        [
            *((f"provider={name}", "oauth_provider_not_supported") for name in ("nobody", "email", "phone")),
            ("", "validation_failed"),
            ("provider=google&provider=acme", "validation_failed"),
            ("provider=google&nonce=1&nonce=2", "validation_failed"),
        ],
    )
    def test_invalid_request_or_head_starts_no_flow(self, service, session, database, sent, error_code):
        assert_error(session.get(f"{AUTHORIZE}?{sent}"), 400, error_code, details=A_SENTENCE)
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

    def test_page_names_a_user_without_address_by_the_oldest_identity(self, service, twitter):
        twitter.be("2244994945", "<b>X")
        session = service.signed_in("twitter")
        assert fragment(link(service, session, "google")) == LINKED
        url, sentence = (
            begin_linking(service, session, "acme"),
            "to sign in to the account that signs in with",
        )
        shown = f'{sentence} Twitter as <bdi translate="no">&lt;b&gt;X</bdi>.</p>'
        assert shown in service.browser().visit(url).text
        # A name that looks like another person's address, or like a link, is not shown.
        for name in ("bob@example.com", "mallory.example", "x" * 81, "", None):
            twitter.be("2244994945", name)
            service.signed_in("twitter")
            assert f"{sentence} Twitter.</p>" in service.browser().visit(url).text

    def test_page_escapes_an_address_and_names_a_user_without_any_name(self, service, session, database):
        url = begin_linking(service, session, "google")
        database.run("UPDATE users SET email = '<b>x</b>@example.com'")
        assert "<b>x" not in service.browser().visit(url).text
        database.run("UPDATE users SET email = NULL")
        assert "the account that requested this.</p>" in service.browser().visit(url).text

    def test_unknown_flow_or_one_older_than_ten_minutes_is_refused(self, service, browser, database):
        state, url = service.leave(service.browser(), "google")["state"], browser.page.url
        for flow in ("", "x", "x" * 43, "x" * 2048, state):
            page = service.browser().visit(f"{SITE}/link-identity?flow={flow}")
            assert (page.status, page.forms) == (403, [])
        database.run("UPDATE oauth_flows SET expires_at = expires_at - interval '10 minutes'")
        assert browser.submit().status == 403
        assert service.browser().visit(url).status == 403

    def test_button_leads_back_while_the_provider_is_down(self, make_service, alice, google, database):
        service, session = make_service(), alice.sign_in()
        google.instead[google.DISCOVERY] = Answer(500)
        page = link(service, session, "google", redirect_to=APPLICATION)
        assert_failed(page, "bad_oauth_callback", "temporarily_unavailable", APPLICATION)
        assert database.count("identities") == 1
        google.instead.clear()
        service.age("google", 5)
        assert fragment(link(service, session, "google")) == LINKED


class TestLinking:
    def test_linked_identity_is_listed_mailed_and_signs_in(self, service, session, alice, database, outbox):
        assert fragment(link(service, session, "google")) == LINKED
        user = session.get("/user").json
        linked = external("google", "alice-at-google", ALICES["email"], True, name="Alice L.")
        own = identity("email", alice.email, last_sign_in_at=A_TIMESTAMP)
        assert user["identities"] == [own, linked | {"last_sign_in_at": None}]
        assert user["app_metadata"] == {"provider": "email", "providers": ["email", "google"]}
        assert (user["email"], user["user_metadata"]) == (alice.email, {})
        # Linking does not sign in.
        assert (database.count("sessions"), database.count("authorization_codes")) == (1, 0)
        assert outbox.kinds() == [("identity_linked", alice.email)]
        assert outbox.last().variables["provider"] == "google"
        assert service.signed_in("google").get("/user").json["id"] == alice.id

    def test_each_kind_of_provider_can_be_linked(self, service, session, fakes):
        for fake in (fakes.apple, fakes.acme, fakes.azure):
            fake.person = {"sub": "alice"}
        for provider in ("github", "twitter", "acme", "azure"):
            assert fragment(link(service, session, provider)) == LINKED
        browser = service.browser()
        link(service, session, "apple", browser)
        assert fragment(browser.submit()) == LINKED
        providers = ["email", "github", "twitter", "acme", "azure", "apple"]
        assert session.get("/user").json["app_metadata"]["providers"] == providers

    def test_authorization_request_is_that_of_a_sign_in(self, service, session, database):
        # Linking ignores challenges, also those of a method that sign-ins refuse.
        challenge: dict[str, Any] = {"code_challenge": CHALLENGE, "code_challenge_method": "plain"}
        browser = service.browser()
        browser.visit(begin_linking(service, session, "google", scopes="openid contacts", **challenge))
        assert database.value("SELECT code_challenge FROM oauth_flows") is None
        page = browser.submit(stop=lambda url: not url.startswith(SITE))
        sent = single(urlsplit(page.url).query)
        names = "response_type client_id redirect_uri scope state nonce code_challenge code_challenge_method"
        assert set(sent) == set(names.split())
        assert sent["scope"] == "openid contacts"
        assert fragment(link(service, session, "google", **challenge)) == LINKED

    def test_form_leads_across_origins_to_the_application(self, service, session, google, acme):
        # As the log-in pages of Microsoft, Google and Facebook do. The provider agrees at once, but the CSP of
        # our form does not apply: a page led to the provider.
        google.elsewhere = f"{acme.url}/detour"
        assert fragment(link(service, session, "google", redirect_to=APPLICATION), APPLICATION) == LINKED

    def test_flow_works_once(self, service, browser, database):
        url = browser.page.url
        back = browser.submit(stop=service.is_callback).url
        assert fragment(browser.visit(back)) == LINKED
        assert_failed(browser.visit(back), "bad_oauth_state", "invalid_request")
        assert browser.visit(url).status == 403
        assert database.count("identities") == 2

    def test_one_of_many_concurrent_submissions_works(self, service, browser):
        browsers = [browser] + [service.browser() for _ in range(5)]
        for other in browsers[1:]:
            other.visit(browser.page.url)
        pages = at_once(6, lambda number: browsers[number].submit(stop=service.is_callback))
        assert sorted(page.status for page in pages) == [0] + [403] * 5


class TestConflicts:
    def test_foreign_or_second_identity_is_not_linked(self, service, session, bob, google, database):
        link(service, session, "google")
        bobs = bob.sign_in()
        before = database.everything("identities", "users")
        assert_failed(link(service, bobs, "google"), "identity_already_exists")
        for subject in ("another-of-alice", "alice-at-google"):
            google.person = {"sub": subject}
            assert_failed(link(service, session, "google"), "identity_already_exists")
        assert database.everything("identities", "users") == before

    def test_one_of_two_users_gets_an_identity_linked_at_once(self, service, browser, back, bob, database):
        bobs = service.browser()
        bobs.visit(begin_linking(service, bob.sign_in(), "google"))
        ways = [(browser, back), (bobs, bobs.submit(stop=service.is_callback).url)]
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
        for alices in (service.browser(fetch_metadata=True), service.browser(fetch_metadata=False)):
            for seen_before in (False, True):
                alices.be_at("https://mallory.example/")
                if seen_before:
                    # The page names Mallory's user.
                    page = alices.click(url)
                    assert (page.status, len(page.forms), "@example.com" in page.text) == (200, 1, True)
                    alices.be_at("https://mallory.example/")
                assert alices.post(f"{SITE}/link-identity", {"flow": flow_of(url)}).status == 403
        headers = {"Sec-Fetch-Site": "cross-site", "Origin": "https://mallory.example"}
        response = service.client.post("/link-identity", json={"flow": flow_of(url)}, headers=headers)
        assert (response.status_code, response.json["error_code"]) == (403, "origin_not_allowed")
        assert_not_linked(database, google)

    def test_state_or_flow_of_mallory_is_refused_in_alices_browser(self, service, url, database):
        mallorys, alices = service.browser(), service.browser()
        mallorys.visit(url)
        to_provider = mallorys.submit(stop=lambda url: not url.startswith(SITE)).url
        # Alice opens a link to Google with Mallory's state.
        assert_failed(alices.visit(to_provider), "bad_oauth_state", "invalid_request")
        code = single(urlsplit(service.return_url(alices, "google")).query)["code"]
        forged = f"{service.callback('google')}?{urlencode({'state': flow_of(url), 'code': code})}"
        assert_failed(alices.visit(forged), "bad_oauth_state", "invalid_request")
        assert database.count("identities", "provider <> 'email'") == 0

    def test_sign_in_under_way_does_not_become_a_linking(self, service, url):
        alices = service.browser()
        back = service.return_url(alices, "google")
        alices.visit(url)
        assert service.session(alices.visit(back)).get("/user").json["email"] == ALICES["email"]


class TestChangesDuringALinking:
    """Changes between the page and the callback; tests/extensions/social/test_oauth_state.py has what sign-ins share."""

    def test_linking_fails_if_the_session_adds_the_first_factor(self, session, browser, service, database):
        _app, session = set_up(session)
        assert_failed(browser.submit(), "session_not_found")
        assert database.count("identities") == 1
        assert fragment(link(service, session, "google")) == LINKED

    @pytest.mark.parametrize(
        ("change", "error"),
        [
            ("logout", ["session_not_found"]),
            ("expiry", ["session_not_found"]),
            ("ban", ["session_not_found"]),
            ("deletion", ["bad_oauth_state", "invalid_request"]),
        ],
    )
    def test_linking_fails_when_the_session_ends_before_the_callback_or_the_button(
        self, service, session, browser, back, database, outbox, change, error
    ):
        other = service.browser()
        other.visit(begin_linking(service, session, "google"))
        if change == "ban":
            database.run("UPDATE users SET banned_until = 'infinity'")
        elif change == "logout":
            session.post("/logout")
        elif change == "expiry":
            database.run("UPDATE sessions SET refreshed_at = now() - interval '31 days'")
        else:
            session.delete("/user")
        assert other.submit().status == 403
        assert_failed(browser.visit(back), *error)
        assert database.count("identities", "provider <> 'email'") == 0
        assert ("identity_linked", session.user["email"]) not in outbox.kinds()

    def test_linking_fails_when_the_provider_is_removed_or_the_root_secret_replaced(
        self, browser, make_app, make_service, google, database
    ):
        without = UserAgent({SITE: make_app().test_client(use_cookies=False)})
        replaced = make_service(AUTH_SECRET_KEY=secret("x")).browser()
        for later in (without, replaced):
            later.cookies, later.page = browser.cookies, browser.page
        assert_failed(without.submit(), "oauth_provider_not_supported", "server_error")
        assert replaced.submit().status == 403
        assert_not_linked(database, google)

    def test_linking_fails_after_a_concurrent_logout(self, session, browser, back, alice, database):
        statement = f"UPDATE users SET updated_at = now() WHERE id = %s; UPDATE sessions SET ended_at = now(), end_reason = 'ended_by_admin' WHERE id = '{session.id}'"
        with database.locked("users", alice.id, statement) as lock:
            page = lock.start(lambda: browser.visit(back))
        assert_failed(page.result(), "session_not_found")
        assert database.count("identities") == 1


class TestReauthentication:
    @pytest.mark.parametrize("proof", ["password", "code"])
    def test_old_session_needs_reauthentication_to_link(self, service, session, outbox, database, proof):
        database.run(OLD)
        # The error does not ask for a password, because logs would keep a password in a URL.
        details = (
            "give nonce with the code that GET /reauthenticate sends: this session is too old for this change"
        )
        for sent in ("", f"&current_password={PASSWORD}"):
            assert_error(session.get(WITH_GOOGLE + sent), 400, "reauthentication_needed", details=details)
        if proof == "password":
            assert session.post("/reauthenticate", json={"current_password": PASSWORD}).status_code == 200
            assert fragment(link(service, session, "google", nonce="000000")) == LINKED
        else:
            session.get("/reauthenticate")
            sent = outbox.last(kind="reauthentication")
            wrong = session.get(f"{WITH_GOOGLE}&nonce={sent.wrong_code}")
            assert_error(wrong, 400, "reauthentication_not_valid", details=A_SENTENCE)
            assert database.count("oauth_flows") == 0
            assert fragment(link(service, session, "google", nonce=sent.code)) == LINKED

    def test_old_session_needs_reauthentication_to_unlink(self, service, session, database):
        link(service, session, "google")
        database.run(OLD)
        path = path_of(session)
        assert_error(session.delete(path), 400, "reauthentication_needed", details=A_SENTENCE)
        wrong = session.delete(path, json={"current_password": "Wrong-Horse-1"})
        assert_error(wrong, 400, "current_password_invalid", details=A_SENTENCE)
        assert database.count("identities") == 2
        assert session.delete(path, json={"current_password": PASSWORD}).status_code == 200


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

    def test_without_manual_linking_only_addresses_are_removed(
        self, make_service, service, session, database
    ):
        link(service, session, "google")
        forbidding = session.on(make_service(AUTH_MANUAL_LINKING="false").client)
        assert_error(forbidding.remove_identity("google"), 404, "manual_linking_disabled")
        recent = {
            each["type"]: each["id"] for each in session.get("/user/recent_changes").json["recent_changes"]
        }
        assert_error(
            forbidding.put("/user", json={"remove": [recent["identity"]]}), 404, "manual_linking_disabled"
        )
        assert forbidding.remove_identity("email").status_code == 200
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
        twitters = path_of(by_twitter, "twitter")
        assert by_twitter.delete(path_of(by_twitter)).status_code == 200
        assert_error(by_twitter.delete(twitters), *LAST)
        assert database.count("identities") == 1

    def test_one_of_two_identities_unlinked_concurrently_remains(self, service, by_twitter, database):
        ids = list(identities_of(by_twitter).values())
        sessions = [by_twitter.on(service.app.test_client()) for _ in ids]
        responses = at_once(2, lambda number: sessions[number].delete(f"/user/identities/{ids[number]}"))
        assert sorted(response.status_code for response in responses) == [200, 422]
        assert database.count("identities") == 1

    def test_email_is_a_way_to_sign_in_unless_disabled(self, make_service, client, outbox):
        disabled, address = make_service(AUTH_EMAIL_ENABLED="false"), {"email": ALICES["email"]}
        session = disabled.signed_in("google")
        assert_error(disabled.client.post("/magiclink", json=address), 400, "email_provider_disabled")
        assert_error(session.delete(path_of(session)), *LAST)
        assert session.on(client).delete(path_of(session)).status_code == 200
        client.post("/magiclink", json=address)
        response = hand_in(client, "magiclink", outbox.last(ALICES["email"], "magiclink").token)
        assert (response.status_code, response.json["user"]["id"]) == (200, session.claims["sub"])


def test_users_list_their_identities_and_providers_cannot_be_set(service, session, alice, service_role):
    link(service, session, "google")
    expected = session.get("/user").json
    assert [each["provider"] for each in expected["identities"]] == ["email", "google"]
    for each in expected["identities"]:
        assert (each["id"], each["identity_id"], each["user_id"]) == (A_UUID, each["id"], alice.id)
    path, body = f"/admin/users/{alice.id}", {"app_metadata": {"provider": "x", "providers": ["y"], "z": 1}}
    refreshed = session.refresh().json["user"]
    by_admin = service.client.get(path, headers=service_role).json
    changed = session.put("/user", json={"data": {"x": 1}}).json
    set_by_admin = service.client.put(path, json=body, headers=service_role).json
    expected["app_metadata"] = {"provider": "email", "providers": ["email", "google"]}
    for user, more in ((refreshed, {}), (by_admin, {}), (changed, {}), (set_by_admin, {"z": 1})):
        assert user["identities"] == expected["identities"]
        assert user["app_metadata"] == expected["app_metadata"] | more
