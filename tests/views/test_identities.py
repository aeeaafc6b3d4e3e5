"""The identities of a user: linked over a page that says to whom, and unlinked, but never the last way to
sign in.
"""

import re
from typing import Any
from urllib.parse import urlencode, urlsplit

import pytest

from tests.support.answers import A_SENTENCE, A_TIMESTAMP, A_UUID, ANYTHING, assert_error, assert_ok, identity
from tests.support.cast import PASSWORD
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
    """Alice, signed in by her password."""
    return alice.sign_in().on(service.client)


def flow_of(url: str) -> str:
    return single(urlsplit(url).query)["flow"]


class TestBeginning:
    def test_it_answers_the_address_of_a_page_of_ours(self, service, session):
        response = session.get(f"{AUTHORIZE}?provider=google")
        assert_ok(response, {"url": ANYTHING})
        assert re.fullmatch(rf"{SITE}/link-identity\?flow=[\w-]{{43}}", response.json["url"])
        assert "Set-Cookie" not in response.headers

    def test_it_asks_the_provider_nothing(self, session, google):
        google.instead[google.DISCOVERY] = Answer(500)
        assert session.get(f"{AUTHORIZE}?provider=google").status_code == 200

    def test_what_belongs_to_it_lives_ten_minutes_and_has_no_browser_yet(
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

    def test_it_needs_an_access_token(self, service):
        assert_error(
            service.client.get(f"{AUTHORIZE}?provider=google"), 401, "no_authorization", details=A_SENTENCE
        )

    def test_an_ended_session_is_refused(self, session, database):
        session.post("/logout")
        assert_error(session.get(f"{AUTHORIZE}?provider=google"), 401, "session_not_found")
        assert database.count("oauth_flows") == 0

    def test_a_banned_user_is_refused(self, session, database):
        database.run("UPDATE users SET banned_until = 'infinity'")
        assert_error(session.get(f"{AUTHORIZE}?provider=google"), 403, "user_banned")
        assert database.count("oauth_flows") == 0

    def test_an_unknown_provider_is_refused(self, session, database):
        for name in ("nobody", "email", "phone"):
            assert_error(
                session.get(AUTHORIZE, query_string={"provider": name}),
                400,
                "oauth_provider_not_supported",
                details=A_SENTENCE,
            )
        assert database.count("oauth_flows") == 0

    @pytest.mark.parametrize("sent", ["", "provider=google&provider=acme", "provider=google&nonce=1&nonce=2"])
    def test_a_bad_request_is_refused(self, session, sent):
        assert_error(session.get(f"{AUTHORIZE}?{sent}"), 400, "validation_failed", details=A_SENTENCE)

    def test_head_begins_nothing(self, service, session, database):
        service.client.head(f"{AUTHORIZE}?provider=google", headers=session.authorization)
        assert database.count("oauth_flows") == 0


class TestThePage:
    def test_it_names_the_provider_and_the_user(self, service, session, alice):
        page = service.browser().visit(begin_linking(service, session, "google"))
        assert (page.status, page.headers["Content-Type"]) == (200, "text/html; charset=utf-8")
        assert "Google" in page.text
        # Or so much of it that only its owner recognises it.
        assert alice.email in page.text or "@example.com" in page.text

    @pytest.mark.parametrize(
        ("name", "shown"),
        [
            ("Xenia Dev", 'the account that signs in with Twitter as <bdi translate="no">Xenia Dev</bdi>.'),
            ("<b>X", 'the account that signs in with Twitter as <bdi translate="no">&lt;b&gt;X</bdi>.'),
            # What would pass for somebody's address, or for a link, is no name.
            ("bob@example.com", "the account that signs in with Twitter."),
            ("mallory.example", "the account that signs in with Twitter."),
            ("x" * 81, "the account that signs in with Twitter."),
            ("", "the account that signs in with Twitter."),
            (None, "the account that signs in with Twitter."),
        ],
        ids=str,
    )
    def test_it_names_whoever_has_no_address_by_the_oldest_identity(
        self, service, twitter, google, name, shown
    ):
        twitter.be("2244994945", name)
        session = service.signed_in("twitter")
        assert fragment(link(service, session, "google")) == LINKED
        page = service.browser().visit(begin_linking(service, session, "acme"))
        assert page.status == 200
        assert f"to sign in to {shown}</p>" in page.text

    def test_it_names_whoever_is_not_known_at_all_by_having_asked(self, service, session, database):
        url = begin_linking(service, session, "google")
        database.run("UPDATE users SET email = NULL")
        assert "the account that asked for this.</p>" in service.browser().visit(url).text

    def test_it_shows_names_as_text(self, service, session, database, alice):
        database.run("UPDATE users SET email = '<b>x</b>@example.com'")
        assert "<b>x" not in service.browser().visit(begin_linking(service, session, "google")).text

    def test_it_can_be_neither_framed_nor_kept(self, service, session):
        headers = service.browser().visit(begin_linking(service, session, "google")).headers
        assert "frame-ancestors 'none'" in headers["Content-Security-Policy"]
        assert "default-src 'none'" in headers["Content-Security-Policy"]
        assert (headers["Cache-Control"], headers["Referrer-Policy"]) == ("no-store", "no-referrer")

    def test_to_look_at_it_has_no_effect(self, service, session, google, database):
        url = begin_linking(service, session, "google")
        before = database.everything()
        for _ in range(2):
            service.browser().visit(url)
        service.client.head(url.removeprefix(SITE))
        assert database.everything() == before
        assert "/authorize" not in google.paths()

    @pytest.mark.parametrize("flow", ["", "x", "x" * 43, "x" * 2048, "{state}"])
    def test_what_is_no_flow_is_dead(self, service, flow):
        state = service.leave(service.browser(), "google")["state"]
        page = service.browser().visit(
            f"{SITE}/link-identity?{urlencode({'flow': flow.format(state=state)})}"
        )
        assert (page.status, page.forms) == (403, [])

    def test_after_ten_minutes_it_is_dead(self, service, session, database):
        url = begin_linking(service, session, "google")
        browser = service.browser()
        browser.visit(url)
        database.run("UPDATE oauth_flows SET expires_at = expires_at - interval '10 minutes'")
        assert browser.submit().status == 403
        assert service.browser().visit(url).status == 403

    def test_while_the_provider_is_away_its_button_leads_back_with_an_error(
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
    def test_its_button_leads_to_the_provider_and_back(self, service, session, alice):
        assert fragment(link(service, session, "google")) == LINKED
        user = session.get("/user").json
        linked = external("google", "alice-at-google", ALICES["email"], True, name="Alice L.") | {
            "last_sign_in_at": None
        }
        assert user["identities"] == [identity("email", alice.email, last_sign_in_at=A_TIMESTAMP), linked]
        assert user["app_metadata"] == {"provider": "email", "providers": ["email", "google"]}
        assert (user["email"], user["user_metadata"]) == (alice.email, {})

    def test_from_then_on_it_signs_in(self, service, session, alice):
        link(service, session, "google")
        assert service.signed_in("google").get("/user").json["id"] == alice.id

    def test_it_signs_nobody_in(self, service, session, database):
        link(service, session, "google")
        assert (database.count("sessions"), database.count("authorization_codes")) == (1, 0)

    def test_the_user_is_told_by_mail(self, service, session, alice, outbox):
        link(service, session, "google")
        (message,) = outbox.sent()
        assert (message.kind, message.to, message.variables["provider"]) == (
            "identity_linked",
            alice.email,
            "google",
        )

    def test_it_works_for_each_kind_of_provider(self, service, session, fakes):
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

    def test_the_provider_is_asked_as_for_a_sign_in(self, service, session, google):
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
    def test_with_a_code_challenge_it_ends_the_same(self, service, session, database, method):
        # Nobody is signed in by it, so there is nothing to trade.
        begin_linking(service, session, "google", code_challenge=CHALLENGE, code_challenge_method=method)
        assert database.value("SELECT code_challenge FROM oauth_flows") is None
        assert fragment(link(service, session, "google", code_challenge=CHALLENGE)) == LINKED

    def test_it_leads_to_an_application_of_another_origin(self, service, session):
        # The provider agrees at once, so that all of the way is one submission of our form, which its CSP
        # must allow (Chrome).
        assert fragment(link(service, session, "google", redirect_to=APPLICATION), APPLICATION) == LINKED

    def test_a_provider_may_send_the_browser_over_other_origins(self, service, session, google, acme):
        # As Microsoft's and Google's log-in pages do, and Facebook's.
        google.elsewhere = f"{acme.url}/detour"
        assert fragment(link(service, session, "google")) == LINKED

    def test_a_refusal_of_the_provider_is_passed_on(self, service, session, google):
        google.response = {"code": None, "error": "access_denied"}
        assert_failed(link(service, session, "google"), "bad_oauth_callback")
        assert session.get("/user").json["app_metadata"]["providers"] == ["email"]

    def test_it_works_once(self, service, session, database):
        browser = service.browser()
        url = begin_linking(service, session, "google")
        browser.visit(url)
        back = browser.submit(stop=service.is_callback).url
        assert fragment(browser.visit(back)) == LINKED
        assert_failed(browser.visit(back), "bad_oauth_state", "invalid_request")
        assert browser.visit(url).status == 403
        assert database.count("identities") == 2

    def test_of_many_buttons_at_once_one_works(self, service, session):
        url = begin_linking(service, session, "google")
        browsers = [service.browser() for _ in range(6)]
        for browser in browsers:
            browser.visit(url)
        pages = at_once(6, lambda number: browsers[number].submit(stop=service.is_callback))
        assert sorted(page.status for page in pages) == [0] + [403] * 5


class TestWhatIsTaken:
    def test_an_identity_of_another_user_is_not_linked(self, service, session, bob, database):
        bobs = bob.sign_in()
        link(service, bobs, "google")
        before = database.everything("identities", "users")
        assert_failed(link(service, session, "google"), "identity_already_exists")
        assert database.everything("identities", "users") == before

    def test_a_second_one_of_a_provider_is_not_linked(self, service, session, google, database):
        link(service, session, "google")
        google.person = {"sub": "another-of-alice"}
        assert_failed(link(service, session, "google"), "identity_already_exists")
        assert database.all("SELECT subject FROM identities WHERE provider = 'google'") == [
            ("alice-at-google",)
        ]

    def test_that_of_the_user_itself_is_linked_already(self, service, session, database):
        link(service, session, "google")
        assert_failed(link(service, session, "google"), "identity_already_exists")
        assert database.count("identities") == 2

    def test_of_two_users_at_once_one_gets_it(self, service, session, bob, database):
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
    """A linking that Mallory has begun would let Alice's identity sign in to Mallory's user, and Alice put
    her things there.
    """

    @pytest.fixture
    def url(self, service, mallory):
        """What Mallory sends to Alice, who is signed in at Google and has agreed to this service long ago."""
        return begin_linking(service, mallory.sign_in(), "google")

    def assert_nothing_linked(self, database) -> None:
        assert database.count("identities", "provider <> 'email'") == 0

    def test_a_link_that_alice_follows_does_nothing_by_itself(self, service, url, google, database):
        alices = service.browser()
        alices.be_at("https://mallory.example/")
        page = alices.click(url)
        assert (page.status, len(page.forms), "/authorize" in google.paths()) == (200, 1, False)
        # It says whose user it is: not hers.
        assert "@example.com" in page.text
        self.assert_nothing_linked(database)

    @pytest.mark.parametrize(
        "fetch_metadata",
        [True, False],
        ids=["a browser of today", "one that says nothing of where a form comes from"],
    )
    @pytest.mark.parametrize("seen_before", [True, False], ids=["who saw the page", "who never saw it"])
    def test_a_form_of_hers_that_alices_browser_sends_is_refused(
        self, service, url, google, database, fetch_metadata, seen_before
    ):
        alices = service.browser(fetch_metadata=fetch_metadata)
        if seen_before:
            alices.visit(url)
        alices.be_at("https://mallory.example/")
        page = alices.post(f"{SITE}/link-identity", {"flow": flow_of(url)})
        assert (page.status, "/authorize" in google.paths()) == (403, False)
        self.assert_nothing_linked(database)

    def test_a_script_cannot_do_it_by_json(self, service, url, database):
        headers = {"Sec-Fetch-Site": "cross-site", "Origin": "https://mallory.example"}
        response = service.client.post("/link-identity", json={"flow": flow_of(url)}, headers=headers)
        assert_error(response, 403, "insufficient_permissions")
        self.assert_nothing_linked(database)

    def test_the_way_back_is_closed_to_alices_browser(self, service, url, database):
        mallorys = service.browser()
        mallorys.visit(url)
        to_provider = mallorys.submit(stop=lambda url: not url.startswith(SITE)).url
        # Alice follows a link to Google that has Mallory's state.
        assert_failed(service.browser().visit(to_provider), "bad_oauth_state", "invalid_request")
        self.assert_nothing_linked(database)

    def test_the_flow_itself_is_no_state(self, service, url, google, database):
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

    def test_alices_sign_in_under_way_does_not_become_a_linking(self, service, url, database):
        alices = service.browser()
        back = service.return_url(alices, "google")
        alices.visit(url)
        assert service.session(alices.visit(back)).get("/user").json["email"] == ALICES["email"]

    def test_mallory_cannot_take_over_a_linking_of_alice(self, service, session, google, database, alice):
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


class TestMeanwhile:
    """Between the page and the way back."""

    @pytest.fixture
    def browser(self, service, session):
        browser = service.browser()
        browser.visit(begin_linking(service, session, "google"))
        return browser

    def test_a_session_that_ends_before_the_button_ends_it(self, session, browser, database):
        session.post("/logout")
        assert browser.submit().status == 403
        assert database.count("identities") == 1

    def test_a_session_that_ends_before_the_way_back_ends_it(
        self, service, session, browser, database, outbox
    ):
        back = browser.submit(stop=service.is_callback).url
        session.post("/logout")
        assert_failed(browser.visit(back), "session_not_found")
        assert (database.count("identities"), outbox.sent()) == (1, [])

    def test_a_ban_ends_it(self, service, session, browser, database):
        back = browser.submit(stop=service.is_callback).url
        database.run("UPDATE users SET banned_until = 'infinity'")
        assert_failed(browser.visit(back), "session_not_found")
        assert database.count("identities") == 1

    def test_a_deletion_ends_it(self, service, session, browser, database):
        back = browser.submit(stop=service.is_callback).url
        assert session.delete("/user").status_code == 200
        assert_failed(browser.visit(back), "bad_oauth_state", "invalid_request")
        assert database.count("users") == 0

    def test_a_provider_that_is_removed_before_the_button_ends_it(
        self, service, session, browser, make_app, google, database
    ):
        later = UserAgent({SITE: make_app().test_client(use_cookies=False)})
        later.cookies, later.page = browser.cookies, browser.page
        assert_failed(later.submit(), "oauth_provider_not_supported", "server_error")
        assert ("/authorize" in google.paths(), database.count("identities")) == (False, 1)

    def test_a_provider_that_is_removed_before_the_way_back_ends_it(
        self, service, session, browser, make_app, database
    ):
        back = browser.submit(stop=service.is_callback).url
        later = UserAgent({SITE: make_app().test_client(use_cookies=False)})
        later.cookies = browser.cookies
        assert_failed(later.visit(back), "oauth_provider_not_supported", "server_error")
        assert (database.count("identities"), database.count("oauth_flows")) == (1, 0)

    def test_a_root_secret_that_is_replaced_ends_it(
        self, service, session, browser, make_service, google, database
    ):
        later = make_service(AUTH_SECRET_KEY="x" * 32).browser()
        later.cookies, later.page = browser.cookies, browser.page
        assert later.submit().status == 403
        assert ("/authorize" in google.paths(), database.count("identities")) == (False, 1)

    def test_a_log_out_at_the_same_moment_ends_it(self, service, session, browser, alice, database):
        back = browser.submit(stop=service.is_callback).url
        statement = f"UPDATE users SET updated_at = now() WHERE id = %s; UPDATE sessions SET ended_at = now(), end_reason = 'ended_by_admin' WHERE id = '{session.id}'"
        with database.locked("users", alice.id, statement) as lock:
            page = lock.start(lambda: browser.visit(back))
        assert_failed(page.result(), "session_not_found")
        assert database.count("identities") == 1


class TestReauthentication:
    @pytest.fixture
    def old(self, session, database):
        """Alice's session, of two days ago."""
        database.run("UPDATE sessions SET created_at = created_at - interval '2 days'")
        return session

    def test_an_old_session_begins_nothing_without(self, old, database):
        # What it does not take, it does not ask for: a password in an address would be kept by logs.
        details = (
            "give nonce with the code that GET /reauthenticate sends: this session is too old for this change"
        )
        for sent in ("", f"&current_password={PASSWORD}"):
            assert_error(
                old.get(f"{AUTHORIZE}?provider=google{sent}"), 400, "reauthentication_needed", details=details
            )
        assert database.count("oauth_flows") == 0

    def test_with_the_code_that_was_sent_it_does(self, service, old, outbox):
        old.get("/reauthenticate")
        browser = service.browser()
        browser.visit(begin_linking(service, old, "google", nonce=outbox.last(kind="reauthentication").code))
        assert fragment(browser.submit()) == LINKED

    def test_with_a_wrong_one_it_does_not(self, old, outbox, database):
        old.get("/reauthenticate")
        wrong = outbox.last(kind="reauthentication").wrong_code
        assert_error(
            old.get(f"{AUTHORIZE}?provider=google&nonce={wrong}"),
            400,
            "reauthentication_not_valid",
            details=A_SENTENCE,
        )
        assert database.count("oauth_flows") == 0

    def test_an_old_session_unlinks_nothing_without(self, service, session, database):
        link(service, session, "google")
        database.run("UPDATE sessions SET created_at = created_at - interval '2 days'")
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

    def test_what_it_is_given_it_does_not_need_it_does_not_look_at(self, service, session):
        assert session.get(f"{AUTHORIZE}?provider=google&nonce=000000").status_code == 200


class TestUnlinking:
    def test_it_is_gone_and_signs_in_nobody_any_more(self, service, session, alice, database):
        link(service, session, "google")
        response = session.delete(f"/user/identities/{identities_of(session)['google']}")
        assert_ok(response, {"message": A_SENTENCE, "timestamp": A_TIMESTAMP})
        user = session.get("/user").json
        assert user["app_metadata"] == {"provider": "email", "providers": ["email"]}
        assert service.signed_in("google").get("/user").json["id"] != alice.id

    def test_the_user_is_told_by_mail(self, service, session, alice, outbox):
        link(service, session, "google")
        session.delete(f"/user/identities/{identities_of(session)['google']}")
        message = outbox.last()
        assert (message.kind, message.to, message.variables["provider"]) == (
            "identity_unlinked",
            alice.email,
            "google",
        )

    def test_it_can_be_linked_again(self, service, session):
        for _ in range(2):
            assert fragment(link(service, session, "google")) == LINKED
            assert session.delete(f"/user/identities/{identities_of(session)['google']}").status_code == 200

    def test_a_second_time_it_is_404(self, service, session):
        link(service, session, "google")
        path = f"/user/identities/{identities_of(session)['google']}"
        session.delete(path)
        assert_error(session.delete(path), 404, "identity_not_found")

    @pytest.mark.parametrize(
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
    def test_what_is_no_identity_of_ones_own_is_404(self, session, id):
        assert_error(session.delete(f"/user/identities/{id}"), 404, "identity_not_found")

    def test_that_of_another_user_is_404(self, service, session, mallory, database):
        link(service, session, "google")
        response = (
            mallory.sign_in()
            .on(service.client)
            .delete(f"/user/identities/{identities_of(session)['google']}")
        )
        assert_error(response, 404, "identity_not_found")
        assert database.count("identities", "provider = 'google'") == 1

    def test_that_of_an_address_stays(self, service, session, database):
        link(service, session, "google")
        response = session.delete(f"/user/identities/{identities_of(session)['email']}")
        assert_error(response, 422, "single_identity_not_deletable")
        assert database.count("identities") == 2

    def test_the_last_one_stays(self, service, twitter, database):
        session = service.signed_in("twitter")
        response = session.delete(f"/user/identities/{identities_of(session)['twitter']}")
        assert_error(response, 422, "single_identity_not_deletable")
        assert database.count("identities") == 1

    def test_of_two_without_an_address_one_goes(self, service, twitter, google):
        session = service.signed_in("twitter")
        google.person = {"sub": "x"}
        link(service, session, "google")
        owned = identities_of(session)
        assert session.delete(f"/user/identities/{owned['google']}").status_code == 200
        assert_error(
            session.delete(f"/user/identities/{owned['twitter']}"), 422, "single_identity_not_deletable"
        )

    def test_of_two_at_once_one_stays(self, service, twitter, google, database):
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

    def test_a_provider_that_is_not_set_up_any_more_is_no_way_to_sign_in(
        self, service, twitter, google, make_app
    ):
        session = service.signed_in("twitter")
        google.person = {"sub": "x"}
        link(service, session, "google")
        # As the deployment is later, without Twitter.
        later = make_app(**google.settings()).test_client()
        response = session.on(later).delete(f"/user/identities/{identities_of(session)['google']}")
        assert_error(response, 422, "single_identity_not_deletable")

    def test_with_email_disabled_an_address_is_no_way_to_sign_in(self, make_service, google):
        service = make_service(AUTH_EMAIL_ENABLED="false")
        session = service.signed_in("google")
        assert_error(
            service.client.post("/magiclink", json={"email": ALICES["email"]}), 400, "email_provider_disabled"
        )
        response = session.delete(f"/user/identities/{identities_of(session)['google']}")
        assert_error(response, 422, "single_identity_not_deletable")

    def test_whoever_came_by_google_and_leaves_it_can_still_come_by_mail(
        self, service, google, client, outbox
    ):
        session = service.signed_in("google")
        user_id = session.claims["sub"]
        assert session.delete(f"/user/identities/{identities_of(session)['google']}").status_code == 200
        client.post("/magiclink", json={"email": ALICES["email"]})
        response = client.post(
            "/verify",
            json={"type": "magiclink", "token_hash": outbox.last(ALICES["email"], "magiclink").token},
        )
        assert (response.status_code, response.json["user"]["id"]) == (200, user_id)

    def test_it_needs_an_access_token(self, service):
        assert_error(
            service.client.delete(f"/user/identities/{'0' * 8}-0000-4000-8000-{'0' * 12}"),
            401,
            "no_authorization",
            details=A_SENTENCE,
        )

    def test_the_service_role_key_is_no_users(self, service, service_role):
        response = service.client.delete(
            f"/user/identities/{'0' * 8}-0000-4000-8000-{'0' * 12}", headers=service_role
        )
        assert_error(response, 401, "bad_jwt")

    def test_an_ended_session_is_refused(self, service, session, database):
        link(service, session, "google")
        path = f"/user/identities/{identities_of(session)['google']}"
        session.post("/logout")
        assert_error(session.delete(path), 401, "session_not_found")
        assert_error(session.delete("/user/identities/x"), 401, "session_not_found")
        assert database.count("identities") == 2


def test_identities_are_on_the_user_wherever_that_is_answered(service, session, alice, service_role):
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


def test_an_administrator_cannot_set_the_providers(service, session, alice, service_role):
    link(service, session, "google")
    body = {"app_metadata": {"provider": "x", "providers": ["y"], "z": 1}}
    service.client.put(f"/admin/users/{alice.id}", json=body, headers=service_role)
    assert session.get("/user").json["app_metadata"] == {
        "provider": "email",
        "providers": ["email", "google"],
        "z": 1,
    }


def test_beginning_and_unlinking_are_limited_together(make_service, alice):
    service = make_service(AUTH_RATE_LIMITS_ENABLED="true", AUTH_RATE_LIMIT_USER_CHANGES="2 per minute")
    session = alice.sign_in().on(service.client)
    assert session.get(f"{AUTHORIZE}?provider=google").status_code == 200
    assert session.delete("/user/identities/x").status_code == 404
    assert session.get(f"{AUTHORIZE}?provider=google").status_code == 429
