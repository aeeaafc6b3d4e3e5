"""Linking identities through a confirmation page, and unlinking all but the last way to sign in."""

import re
from typing import Any
from urllib.parse import urlencode, urlsplit

import pytest

from tests.conftest import secret
from tests.support.answers import A_SENTENCE, A_TIMESTAMP, A_UUID, ANYTHING, assert_error, assert_ok, identity
from tests.support.cases import cases
from tests.support.cast import PASSWORD
from tests.support.factors import set_up
from tests.support.fake_provider import Answer
from tests.support.links import CHALLENGE
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

pytest_plugins = ["tests.support.oauth_fixtures"]
ALICES: dict[str, Any] = {
    "sub": "alice-at-google",
    "email": "alice.liddell@gmail.example",
    "email_verified": True,
    "name": "Alice L.",
}
LINKED = {"message": A_SENTENCE, "type": "identity_linked"}
AUTHORIZE = "/user/identities/authorize"


@pytest.fixture(autouse=True)
def _people(google) -> None:
    google.person = ALICES


@pytest.fixture
def session(service, alice):
    """A session of Alice's, as after a sign-in with her password."""
    return alice.sign_in().on(service.client)


def flow_of(url: str) -> str:
    return single(urlsplit(url).query)["flow"]


class TestBeginningALinking:
    def test_response_is_the_url_of_a_page_of_the_service(self, service, session):
        response = session.get(f"{AUTHORIZE}?provider=google")
        assert_ok(response, {"url": ANYTHING})
        assert re.fullmatch(rf"{SITE}/link-identity\?flow=[\w-]{{43}}", response.json["url"])
        assert "Set-Cookie" not in response.headers

    def test_provider_is_not_called(self, session, google):
        google.instead[google.DISCOVERY] = Answer(500)
        assert session.get(f"{AUTHORIZE}?provider=google").status_code == 200

    def test_flow_expires_after_ten_minutes_and_is_not_bound_to_a_browser_yet(
        self, service, session, alice, database
    ):
        url = begin_linking(service, session, "google", redirect_to=APPLICATION)
        row = database.one(
            "SELECT *, extract(epoch FROM expires_at - created_at)::int AS lifetime FROM oauth_flows"
        )
        assert (row.user_id, row.session_id, row.browser_hash, row.redirect_to, row.lifetime) == (
            alice.id,
            session.id,
            None,
            APPLICATION,
            600,
        )
        assert flow_of(url) not in str(database.everything())

    def test_linking_needs_an_access_token(self, service):
        assert_error(
            service.client.get(f"{AUTHORIZE}?provider=google"), 401, "no_authorization", details=A_SENTENCE
        )

    def test_ended_session_is_refused(self, session, database):
        session.post("/logout")
        assert_error(session.get(f"{AUTHORIZE}?provider=google"), 401, "session_not_found")
        assert database.count("oauth_flows") == 0

    def test_banned_user_is_refused(self, session, database):
        database.run("UPDATE users SET banned_until = 'infinity'")
        assert_error(session.get(f"{AUTHORIZE}?provider=google"), 403, "user_banned")
        assert database.count("oauth_flows") == 0

    def test_unknown_provider_is_refused(self, session, database):
        for name in ("nobody", "email", "phone"):
            assert_error(
                session.get(AUTHORIZE, query_string={"provider": name}),
                400,
                "oauth_provider_not_supported",
                details=A_SENTENCE,
            )
        assert database.count("oauth_flows") == 0

    @pytest.mark.parametrize("sent", ["", "provider=google&provider=acme", "provider=google&nonce=1&nonce=2"])
    def test_invalid_request_is_refused(self, session, sent):
        assert_error(session.get(f"{AUTHORIZE}?{sent}"), 400, "validation_failed", details=A_SENTENCE)

    def test_head_starts_no_flow(self, service, session, database):
        service.client.head(f"{AUTHORIZE}?provider=google", headers=session.authorization)
        assert database.count("oauth_flows") == 0


class TestPage:
    def test_page_names_the_provider_and_the_user(self, service, session, alice):
        page = service.browser().visit(begin_linking(service, session, "google"))
        assert (page.status, page.headers["Content-Type"]) == (200, "text/html; charset=utf-8")
        assert "Google" in page.text
        # The address may be masked, so that only its owner recognises it.
        assert alice.email in page.text or "@example.com" in page.text

    @pytest.mark.parametrize(
        ("name", "shown"),
        [
            ("Xenia Dev", 'the account that signs in with Twitter as <bdi translate="no">Xenia Dev</bdi>.'),
            ("<b>X", 'the account that signs in with Twitter as <bdi translate="no">&lt;b&gt;X</bdi>.'),
            # A name that looks like another person's address, or like a link, is not shown.
            ("bob@example.com", "the account that signs in with Twitter."),
            ("mallory.example", "the account that signs in with Twitter."),
            ("x" * 81, "the account that signs in with Twitter."),
            ("", "the account that signs in with Twitter."),
            (None, "the account that signs in with Twitter."),
        ],
        ids=str,
    )
    def test_page_names_a_user_without_address_by_the_oldest_identity(
        self, service, twitter, google, name, shown
    ):
        twitter.be("2244994945", name)
        session = service.signed_in("twitter")
        assert fragment(link(service, session, "google")) == LINKED
        page = service.browser().visit(begin_linking(service, session, "acme"))
        assert page.status == 200
        assert f"to sign in to {shown}</p>" in page.text

    def test_page_names_a_user_without_any_name_generically(self, service, session, database):
        url = begin_linking(service, session, "google")
        database.run("UPDATE users SET email = NULL")
        assert "the account that asked for this.</p>" in service.browser().visit(url).text

    def test_page_escapes_names(self, service, session, database, alice):
        database.run("UPDATE users SET email = '<b>x</b>@example.com'")
        assert "<b>x" not in service.browser().visit(begin_linking(service, session, "google")).text

    def test_page_cannot_be_framed_or_cached(self, service, session):
        headers = service.browser().visit(begin_linking(service, session, "google")).headers
        assert "frame-ancestors 'none'" in headers["Content-Security-Policy"]
        assert "default-src 'none'" in headers["Content-Security-Policy"]
        assert (headers["Cache-Control"], headers["Referrer-Policy"]) == ("no-store", "no-referrer")

    def test_viewing_the_page_has_no_effect(self, service, session, google, database):
        url = begin_linking(service, session, "google")
        before = database.everything()
        for _ in range(2):
            service.browser().visit(url)
        service.client.head(url.removeprefix(SITE))
        assert database.everything() == before
        assert "/authorize" not in google.paths()

    @cases("flow", ["", "x", "x" * 43, "x" * 2048, "{state}"])
    def test_unknown_flow_is_refused(self, service, flow):
        state = service.leave(service.browser(), "google")["state"]
        page = service.browser().visit(
            f"{SITE}/link-identity?{urlencode({'flow': flow.format(state=state)})}"
        )
        assert (page.status, page.forms) == (403, [])

    def test_flow_is_refused_after_ten_minutes(self, service, session, database):
        url = begin_linking(service, session, "google")
        browser = service.browser()
        browser.visit(url)
        database.run("UPDATE oauth_flows SET expires_at = expires_at - interval '10 minutes'")
        assert browser.submit().status == 403
        assert service.browser().visit(url).status == 403

    def test_button_redirects_back_with_an_error_while_the_provider_is_down(
        self, make_service, alice, google, database
    ):
        service = make_service()
        session = alice.sign_in()
        google.instead[google.DISCOVERY] = Answer(500)
        page = link(service, session, "google", redirect_to=APPLICATION)
        assert_failed(page, "bad_oauth_callback", "temporarily_unavailable", APPLICATION)
        assert database.count("identities") == 1
        google.instead.clear()
        assert fragment(link(service, session, "google")) == LINKED


class TestLinking:
    def test_button_redirects_to_the_provider_and_back(self, service, session, alice):
        assert fragment(link(service, session, "google")) == LINKED
        user = session.get("/user").json
        linked = external("google", "alice-at-google", ALICES["email"], True, name="Alice L.") | {
            "last_sign_in_at": None
        }
        assert user["identities"] == [identity("email", alice.email, last_sign_in_at=A_TIMESTAMP), linked]
        assert user["app_metadata"] == {"provider": "email", "providers": ["email", "google"]}
        assert (user["email"], user["user_metadata"]) == (alice.email, {})

    def test_linked_identity_signs_in(self, service, session, alice):
        link(service, session, "google")
        assert service.signed_in("google").get("/user").json["id"] == alice.id

    def test_linking_does_not_sign_in(self, service, session, database):
        link(service, session, "google")
        assert (database.count("sessions"), database.count("authorization_codes")) == (1, 0)

    def test_linking_mails_a_notice(self, service, session, alice, outbox):
        link(service, session, "google")
        (message,) = outbox.sent()
        assert (message.kind, message.to, message.variables["provider"]) == (
            "identity_linked",
            alice.email,
            "google",
        )

    def test_each_kind_of_provider_can_be_linked(self, service, session, fakes):
        fakes.apple.person = {"sub": "001.alice"}
        fakes.acme.person = {"sub": "alice-at-acme"}
        fakes.azure.person = {"sub": "alice-at-azure"}
        for provider in ("github", "twitter", "acme", "azure"):
            assert fragment(link(service, session, provider)) == LINKED
        browser = service.browser()
        link(service, session, "apple", browser)
        assert fragment(browser.submit()) == LINKED
        providers = ["email", "github", "twitter", "acme", "azure", "apple"]
        assert session.get("/user").json["app_metadata"]["providers"] == providers

    def test_authorization_request_is_that_of_a_sign_in(self, service, session, google):
        browser = service.browser()
        browser.visit(begin_linking(service, session, "google", scopes="openid contacts"))
        page = browser.submit(stop=lambda url: not url.startswith(SITE))
        sent = single(urlsplit(page.url).query)
        assert set(sent) == {
            "response_type",
            "client_id",
            "redirect_uri",
            "scope",
            "state",
            "nonce",
            "code_challenge",
            "code_challenge_method",
        }
        assert sent["scope"] == "openid contacts"

    @pytest.mark.parametrize("method", ["s256", "plain"])
    def test_code_challenge_is_ignored(self, service, session, database, method):
        # Linking does not sign in, so there is no code to redeem.
        begin_linking(service, session, "google", code_challenge=CHALLENGE, code_challenge_method=method)
        assert database.value("SELECT code_challenge FROM oauth_flows") is None
        assert fragment(link(service, session, "google", code_challenge=CHALLENGE)) == LINKED

    def test_linking_redirects_to_an_application_of_another_origin(self, service, session):
        # The provider agrees at once, so that all of the way is one submission of our form, which its CSP
        # must allow (Chrome).
        assert fragment(link(service, session, "google", redirect_to=APPLICATION), APPLICATION) == LINKED

    def test_provider_may_redirect_across_origins(self, service, session, google, acme):
        # As Microsoft's and Google's log-in pages do, and Facebook's.
        google.elsewhere = f"{acme.url}/detour"
        assert fragment(link(service, session, "google")) == LINKED

    def test_error_of_the_provider_is_passed_on(self, service, session, google):
        google.response = {"code": None, "error": "access_denied"}
        assert_failed(link(service, session, "google"), "bad_oauth_callback")
        assert session.get("/user").json["app_metadata"]["providers"] == ["email"]

    def test_flow_works_once(self, service, session, database):
        browser = service.browser()
        url = begin_linking(service, session, "google")
        browser.visit(url)
        back = browser.submit(stop=service.is_callback).url
        assert fragment(browser.visit(back)) == LINKED
        assert_failed(browser.visit(back), "bad_oauth_state", "invalid_request")
        assert browser.visit(url).status == 403
        assert database.count("identities") == 2

    def test_one_of_many_concurrent_submissions_works(self, service, session):
        url = begin_linking(service, session, "google")
        browsers = [service.browser() for _ in range(6)]
        for browser in browsers:
            browser.visit(url)
        pages = at_once(6, lambda number: browsers[number].submit(stop=service.is_callback))
        assert sorted(page.status for page in pages) == [0] + [403] * 5


class TestConflicts:
    def test_identity_of_another_user_is_not_linked(self, service, session, bob, database):
        bobs = bob.sign_in()
        link(service, bobs, "google")
        before = database.everything("identities", "users")
        assert_failed(link(service, session, "google"), "identity_already_exists")
        assert database.everything("identities", "users") == before

    def test_second_identity_of_a_provider_is_not_linked(self, service, session, google, database):
        link(service, session, "google")
        google.person = {"sub": "another-of-alice"}
        assert_failed(link(service, session, "google"), "identity_already_exists")
        assert database.all("SELECT subject FROM identities WHERE provider = 'google'") == [
            ("alice-at-google",)
        ]

    def test_identity_of_the_user_itself_is_already_linked(self, service, session, database):
        link(service, session, "google")
        assert_failed(link(service, session, "google"), "identity_already_exists")
        assert database.count("identities") == 2

    def test_one_of_two_users_gets_an_identity_linked_concurrently(self, service, session, bob, database):
        browsers, urls = [], []
        for owner in (session, bob.sign_in()):
            browser = service.browser()
            browser.visit(begin_linking(service, owner, "google"))
            urls.append(browser.submit(stop=service.is_callback).url)
            browsers.append(browser)
        pages = at_once(2, lambda number: browsers[number].visit(urls[number]))
        assert sorted(fragment(page).get("error_code", "") for page in pages) == [
            "",
            "identity_already_exists",
        ]
        assert database.count("identities", "provider = 'google'") == 1


class TestMallory:
    """A linking begun by Mallory must not link Alice's identity to Mallory's user."""

    @pytest.fixture
    def url(self, service, mallory):
        """A URL that Mallory sends to Alice, who is signed in at Google and authorized this service before."""
        return begin_linking(service, mallory.sign_in(), "google")

    def assert_nothing_linked(self, database) -> None:
        assert database.count("identities", "provider <> 'email'") == 0

    def test_opening_the_link_has_no_effect(self, service, url, google, database):
        alices = service.browser()
        alices.be_at("https://mallory.example/")
        page = alices.click(url)
        assert (page.status, len(page.forms), "/authorize" in google.paths()) == (200, 1, False)
        # The page names Mallory's user.
        assert "@example.com" in page.text
        self.assert_nothing_linked(database)

    @pytest.mark.parametrize(
        "fetch_metadata",
        [True, False],
        ids=["a browser of today", "one that says nothing of where a form comes from"],
    )
    @pytest.mark.parametrize("seen_before", [True, False], ids=["page seen", "page not seen"])
    def test_form_posted_by_another_site_is_refused(
        self, service, url, google, database, fetch_metadata, seen_before
    ):
        alices = service.browser(fetch_metadata=fetch_metadata)
        if seen_before:
            alices.visit(url)
        alices.be_at("https://mallory.example/")
        page = alices.post(f"{SITE}/link-identity", {"flow": flow_of(url)})
        assert (page.status, "/authorize" in google.paths()) == (403, False)
        self.assert_nothing_linked(database)

    def test_json_is_refused(self, service, url, database):
        headers = {"Sec-Fetch-Site": "cross-site", "Origin": "https://mallory.example"}
        response = service.client.post("/link-identity", json={"flow": flow_of(url)}, headers=headers)
        assert_error(response, 400, "validation_failed", details="flow: is required")
        self.assert_nothing_linked(database)

    def test_callback_is_refused_in_alices_browser(self, service, url, database):
        mallorys = service.browser()
        mallorys.visit(url)
        to_provider = mallorys.submit(stop=lambda url: not url.startswith(SITE)).url
        # Alice opens a link to Google with Mallory's state.
        assert_failed(service.browser().visit(to_provider), "bad_oauth_state", "invalid_request")
        self.assert_nothing_linked(database)

    def test_flow_is_refused_as_state(self, service, url, google, database):
        alices = service.browser()
        sent = service.leave(alices, "google")
        back = service.return_url(alices, "google")
        code = single(urlsplit(back).query)["code"]
        assert_failed(
            alices.visit(f"{service.callback('google')}?{urlencode({'state': flow_of(url), 'code': code})}"),
            "bad_oauth_state",
            "invalid_request",
        )
        assert sent["state"] != flow_of(url)
        self.assert_nothing_linked(database)

    def test_sign_in_under_way_does_not_become_a_linking(self, service, url, database):
        alices = service.browser()
        back = service.return_url(alices, "google")
        alices.visit(url)
        assert service.session(alices.visit(back)).get("/user").json["email"] == ALICES["email"]

    def test_linking_of_alice_cannot_be_taken_over(self, service, session, google, database, alice):
        url = begin_linking(service, session, "google")
        alices = service.browser()
        alices.visit(url)
        back = alices.submit(stop=service.is_callback).url
        google.person = {"sub": "mallory-at-google"}
        mallorys = service.browser()
        hers = service.return_url(mallorys, "google")
        mixed = single(urlsplit(back).query) | {"code": single(urlsplit(hers).query)["code"]}
        assert_failed(
            mallorys.visit(f"{service.callback('google')}?{urlencode(mixed)}"),
            "bad_oauth_state",
            "invalid_request",
        )
        assert_failed(
            alices.visit(f"{service.callback('google')}?{urlencode(mixed)}"),
            "bad_oauth_callback",
            "server_error",
        )
        assert database.count("identities", "subject = 'mallory-at-google'") == 0


class TestChangesDuringALinking:
    """Changes between the page and the callback."""

    @pytest.fixture
    def browser(self, service, session):
        browser = service.browser()
        browser.visit(begin_linking(service, session, "google"))
        return browser

    def test_linking_fails_when_the_session_ends_before_the_button(self, session, browser, database):
        session.post("/logout")
        assert browser.submit().status == 403
        assert database.count("identities") == 1

    def test_linking_fails_when_the_session_ends_before_the_callback(
        self, service, session, browser, database, outbox
    ):
        back = browser.submit(stop=service.is_callback).url
        session.post("/logout")
        assert_failed(browser.visit(back), "session_not_found")
        assert (database.count("identities"), outbox.sent()) == (1, [])

    def test_linking_fails_if_the_session_adds_the_first_factor_meanwhile(
        self, session, browser, service, database
    ):
        _app, session = set_up(session)
        assert_failed(browser.submit(), "session_not_found")
        assert database.count("identities") == 1
        assert fragment(link(service, session, "google")) == LINKED

    def test_linking_fails_after_a_ban(self, service, session, browser, database):
        back = browser.submit(stop=service.is_callback).url
        database.run("UPDATE users SET banned_until = 'infinity'")
        assert_failed(browser.visit(back), "session_not_found")
        assert database.count("identities") == 1

    def test_linking_fails_after_deletion_of_the_user(self, service, session, browser, database):
        back = browser.submit(stop=service.is_callback).url
        assert session.delete("/user").status_code == 200
        assert_failed(browser.visit(back), "bad_oauth_state", "invalid_request")
        assert database.count("users") == 0

    def test_linking_fails_when_the_provider_is_removed_before_the_button(
        self, service, session, browser, make_app, google, database
    ):
        later = UserAgent({SITE: make_app().test_client(use_cookies=False)})
        later.cookies, later.page = browser.cookies, browser.page
        assert_failed(later.submit(), "oauth_provider_not_supported", "server_error")
        assert ("/authorize" in google.paths(), database.count("identities")) == (False, 1)

    def test_linking_fails_when_the_provider_is_removed_before_the_callback(
        self, service, session, browser, make_app, database
    ):
        back = browser.submit(stop=service.is_callback).url
        later = UserAgent({SITE: make_app().test_client(use_cookies=False)})
        later.cookies = browser.cookies
        assert_failed(later.visit(back), "oauth_provider_not_supported", "server_error")
        assert (database.count("identities"), database.count("oauth_flows")) == (1, 0)

    def test_linking_fails_after_a_replaced_root_secret(
        self, service, session, browser, make_service, google, database
    ):
        later = make_service(AUTH_SECRET_KEY=secret("x")).browser()
        later.cookies, later.page = browser.cookies, browser.page
        assert later.submit().status == 403
        assert ("/authorize" in google.paths(), database.count("identities")) == (False, 1)

    def test_linking_fails_after_a_concurrent_logout(self, service, session, browser, alice, database):
        back = browser.submit(stop=service.is_callback).url
        statement = f"UPDATE users SET updated_at = now() WHERE id = %s; UPDATE sessions SET ended_at = now(), end_reason = 'ended_by_admin' WHERE id = '{session.id}'"
        with database.locked("users", alice.id, statement) as lock:
            page = lock.start(lambda: browser.visit(back))
        assert_failed(page.result(), "session_not_found")
        assert database.count("identities") == 1


class TestReauthentication:
    @pytest.fixture
    def old(self, session, database):
        """Alice's session, 15 minutes old."""
        database.run("UPDATE sessions SET created_at = created_at - interval '15 minutes'")
        return session

    def test_reauthenticated_session_links_without_a_code(self, service, old):
        assert old.post("/reauthenticate", json={"current_password": PASSWORD}).status_code == 200
        browser = service.browser()
        browser.visit(begin_linking(service, old, "google"))
        assert fragment(browser.submit()) == LINKED

    def test_old_session_needs_reauthentication_to_link(self, old, database):
        # The error does not ask for a password, because logs would keep a password in a URL.
        details = (
            "give nonce with the code that GET /reauthenticate sends: this session is too old for this change"
        )
        for sent in ("", f"&current_password={PASSWORD}"):
            assert_error(
                old.get(f"{AUTHORIZE}?provider=google{sent}"), 400, "reauthentication_needed", details=details
            )
        assert database.count("oauth_flows") == 0

    def test_old_session_links_with_the_code_it_was_sent(self, service, old, outbox):
        old.get("/reauthenticate")
        browser = service.browser()
        browser.visit(begin_linking(service, old, "google", nonce=outbox.last(kind="reauthentication").code))
        assert fragment(browser.submit()) == LINKED

    def test_old_session_does_not_link_with_a_wrong_code(self, old, outbox, database):
        old.get("/reauthenticate")
        wrong = outbox.last(kind="reauthentication").wrong_code
        assert_error(
            old.get(f"{AUTHORIZE}?provider=google&nonce={wrong}"),
            400,
            "reauthentication_not_valid",
            details=A_SENTENCE,
        )
        assert database.count("oauth_flows") == 0

    def test_old_session_needs_reauthentication_to_unlink(self, service, session, database):
        link(service, session, "google")
        database.run("UPDATE sessions SET created_at = created_at - interval '15 minutes'")
        path = f"/user/identities/{identities_of(session)['google']}"
        assert_error(session.delete(path), 400, "reauthentication_needed", details=A_SENTENCE)
        assert_error(
            session.delete(path, json={"current_password": "Wrong-Horse-1"}),
            400,
            "current_password_invalid",
            details=A_SENTENCE,
        )
        assert database.count("identities") == 2
        assert session.delete(path, json={"current_password": PASSWORD}).status_code == 200

    def test_needless_nonce_is_ignored(self, service, session):
        assert session.get(f"{AUTHORIZE}?provider=google&nonce=000000").status_code == 200


class TestUnlinking:
    def test_unlinked_identity_is_gone_and_does_not_sign_in(self, service, session, alice, database):
        link(service, session, "google")
        response = session.delete(f"/user/identities/{identities_of(session)['google']}")
        assert_ok(response, {"message": A_SENTENCE, "timestamp": A_TIMESTAMP})
        user = session.get("/user").json
        assert user["app_metadata"] == {"provider": "email", "providers": ["email"]}
        assert service.signed_in("google").get("/user").json["id"] != alice.id

    def test_session_that_began_with_the_identity_continues_until_the_others_are_ended(
        self, service, session, alice
    ):
        link(service, session, "google")
        by_google = service.signed_in("google")
        session.delete(f"/user/identities/{identities_of(session)['google']}")
        assert by_google.get("/user").json["id"] == alice.id
        session.post("/logout?scope=others")
        assert by_google.get("/user").status_code == 401

    def test_unlinking_mails_a_notice(self, service, session, alice, outbox):
        link(service, session, "google")
        session.delete(f"/user/identities/{identities_of(session)['google']}")
        message = outbox.last()
        assert (message.kind, message.to, message.variables["provider"]) == (
            "identity_unlinked",
            alice.email,
            "google",
        )

    def test_unlinked_identity_can_be_linked_again(self, service, session):
        for _ in range(2):
            assert fragment(link(service, session, "google")) == LINKED
            assert session.delete(f"/user/identities/{identities_of(session)['google']}").status_code == 200

    def test_second_unlinking_is_404(self, service, session):
        link(service, session, "google")
        path = f"/user/identities/{identities_of(session)['google']}"
        session.delete(path)
        assert_error(session.delete(path), 404, "identity_not_found")

    @cases(
        "id",
        [
            "00000000-0000-4000-8000-000000000000",
            "x",
            "google",
            "0",
            "%00",
            "00000000-0000-4000-8000-000000000000x",
        ],
    )
    def test_unknown_or_malformed_id_is_404(self, session, id):
        assert_error(session.delete(f"/user/identities/{id}"), 404, "identity_not_found")

    def test_identity_of_another_user_is_404(self, service, session, mallory, database):
        link(service, session, "google")
        response = (
            mallory.sign_in()
            .on(service.client)
            .delete(f"/user/identities/{identities_of(session)['google']}")
        )
        assert_error(response, 404, "identity_not_found")
        assert database.count("identities", "provider = 'google'") == 1

    def test_identity_of_an_address_cannot_be_unlinked(self, service, session, database):
        link(service, session, "google")
        response = session.delete(f"/user/identities/{identities_of(session)['email']}")
        assert_error(response, 422, "single_identity_not_deletable")
        assert database.count("identities") == 2

    def test_last_identity_cannot_be_unlinked(self, service, twitter, database):
        session = service.signed_in("twitter")
        response = session.delete(f"/user/identities/{identities_of(session)['twitter']}")
        assert_error(response, 422, "single_identity_not_deletable")
        assert database.count("identities") == 1

    def test_one_of_two_identities_can_be_unlinked(self, service, twitter, google):
        session = service.signed_in("twitter")
        google.person = {"sub": "x"}
        link(service, session, "google")
        owned = identities_of(session)
        assert session.delete(f"/user/identities/{owned['google']}").status_code == 200
        assert_error(
            session.delete(f"/user/identities/{owned['twitter']}"), 422, "single_identity_not_deletable"
        )

    def test_one_of_two_identities_unlinked_concurrently_remains(self, service, twitter, google, database):
        session = service.signed_in("twitter")
        google.person = {"sub": "x"}
        link(service, session, "google")
        ids = list(identities_of(session).values())
        clients = [service.app.test_client() for _ in ids]
        responses = at_once(
            2, lambda number: session.on(clients[number]).delete(f"/user/identities/{ids[number]}")
        )
        assert sorted(response.status_code for response in responses) == [200, 422]
        assert database.count("identities") == 1

    def test_identity_of_a_removed_provider_is_not_a_way_to_sign_in(self, service, twitter, google, make_app):
        session = service.signed_in("twitter")
        google.person = {"sub": "x"}
        link(service, session, "google")
        # The deployment later, without Twitter.
        later = make_app(**google.settings()).test_client()
        response = session.on(later).delete(f"/user/identities/{identities_of(session)['google']}")
        assert_error(response, 422, "single_identity_not_deletable")

    def test_email_is_not_a_way_to_sign_in_when_disabled(self, make_service, google):
        service = make_service(AUTH_EMAIL_ENABLED="false")
        session = service.signed_in("google")
        assert_error(
            service.client.post("/magiclink", json={"email": ALICES["email"]}), 400, "email_provider_disabled"
        )
        response = session.delete(f"/user/identities/{identities_of(session)['google']}")
        assert_error(response, 422, "single_identity_not_deletable")

    def test_user_who_unlinks_google_can_still_sign_in_by_mail(self, service, google, client, outbox):
        session = service.signed_in("google")
        user_id = session.claims["sub"]
        assert session.delete(f"/user/identities/{identities_of(session)['google']}").status_code == 200
        client.post("/magiclink", json={"email": ALICES["email"]})
        response = client.post(
            "/verify",
            json={"type": "magiclink", "token_hash": outbox.last(ALICES["email"], "magiclink").token},
        )
        assert (response.status_code, response.json["user"]["id"]) == (200, user_id)

    def test_unlinking_needs_an_access_token(self, service):
        assert_error(
            service.client.delete(f"/user/identities/{'0' * 8}-0000-4000-8000-{'0' * 12}"),
            401,
            "no_authorization",
            details=A_SENTENCE,
        )

    def test_service_role_key_cannot_unlink(self, service, service_role):
        response = service.client.delete(
            f"/user/identities/{'0' * 8}-0000-4000-8000-{'0' * 12}", headers=service_role
        )
        assert_error(response, 401, "bad_jwt")

    def test_ended_session_cannot_unlink(self, service, session, database):
        link(service, session, "google")
        path = f"/user/identities/{identities_of(session)['google']}"
        session.post("/logout")
        assert_error(session.delete(path), 401, "session_not_found")
        assert_error(session.delete("/user/identities/x"), 401, "session_not_found")
        assert database.count("identities") == 2


def test_each_response_with_a_user_lists_its_identities(service, session, alice, service_role):
    link(service, session, "google")
    expected = session.get("/user").json
    assert [each["provider"] for each in expected["identities"]] == ["email", "google"]
    for each in expected["identities"]:
        assert (each["id"], each["identity_id"], each["user_id"]) == (A_UUID, each["id"], alice.id)
    refreshed = session.refresh().json["user"]
    by_admin = service.client.get(f"/admin/users/{alice.id}", headers=service_role).json
    changed = session.put("/user", json={"data": {"x": 1}}).json
    for user in (refreshed, by_admin, changed):
        assert (user["identities"], user["app_metadata"]) == (
            expected["identities"],
            expected["app_metadata"],
        )


def test_administrator_cannot_set_providers(service, session, alice, service_role):
    link(service, session, "google")
    body = {"app_metadata": {"provider": "x", "providers": ["y"], "z": 1}}
    service.client.put(f"/admin/users/{alice.id}", json=body, headers=service_role)
    assert session.get("/user").json["app_metadata"] == {
        "provider": "email",
        "providers": ["email", "google"],
        "z": 1,
    }


def test_linking_and_unlinking_share_one_rate_limit(make_service, alice):
    service = make_service(AUTH_RATE_LIMITS_ENABLED="true", AUTH_RATE_LIMIT_USER_CHANGES="2 per minute")
    session = alice.sign_in().on(service.client)
    assert session.get(f"{AUTHORIZE}?provider=google").status_code == 200
    assert session.delete("/user/identities/x").status_code == 404
    assert session.get(f"{AUTHORIZE}?provider=google").status_code == 429
