"""GET /authorize and the callback: a flow is bound to its browser, provider, time and parameters."""

import json
from urllib.parse import urlencode, urlsplit

import pytest

from tests.conftest import secret
from tests.support.answers import A_SENTENCE, ANYTHING, Like, assert_error, assert_ok
from tests.support.cases import cases
from tests.support.fake_provider import FakeProvider
from tests.support.links import CHALLENGE, WITH_CHALLENGE
from tests.support.oauth import ALLOW_LIST, APPLICATION, SITE, Service, assert_failed, fragment, query, single
from tests.support.server import at_once

pytest_plugins = ["tests.support.oauth_fixtures"]
ALICE = {"sub": "alice-at-google", "email": "alice@example.com", "email_verified": True}
MALLORY = {"sub": "mallory-at-google", "email": "mallory@example.com", "email_verified": True}
A_SECRET = Like("256 random bits", r"[\w-]{43}")
STALE = ("bad_oauth_state", "invalid_request")


@pytest.fixture(autouse=True)
def _people(google: FakeProvider, acme: FakeProvider) -> None:
    google.person = ALICE
    acme.person = {"sub": "alice-at-acme"}


def changed(url: str, **parameters: str | None) -> str:
    """Return a URL with changed parameters; None removes one."""
    address, _, sent = url.partition("?")
    return f"{address}?{urlencode({name: value for name, value in (single(sent) | parameters).items() if value is not None})}"


class TestAuthorize:
    def test_authorization_request_has_state_nonce_and_pkce(self, service, google):
        page = service.browser().visit(service.authorize("google"), stop=lambda url: not url.startswith(SITE))
        assert page.url.startswith(f"{google.url}/authorize?")
        assert single(urlsplit(page.url).query) == {
            "response_type": "code",
            "client_id": google.client_id,
            "redirect_uri": service.callback("google"),
            "scope": "openid email profile",
            "state": A_SECRET,
            "nonce": A_SECRET,
            "code_challenge": A_SECRET,
            "code_challenge_method": "S256",
        }

    def test_each_authorization_request_is_unique(self, service):
        first, second = (service.leave(service.browser(), "google") for _ in range(2))
        assert all(first[name] != second[name] for name in ("state", "nonce", "code_challenge"))
        assert len({first[name] for name in ("state", "nonce", "code_challenge")}) == 3

    def test_authorize_responds_with_302_and_a_cookie(self, service):
        response = service.client.get("/authorize?provider=google")
        assert (response.status_code, response.data) == (302, b"")
        assert response.headers["Cache-Control"] == "no-store"
        assert response.headers["Referrer-Policy"] == "no-referrer"
        assert len(response.headers.getlist("Set-Cookie")) == 1

    @pytest.mark.parametrize("path", ["/authorize", "/%61uthorize", "/auth/v1//authorize"])
    def test_tokens_of_a_sign_in_are_not_carried_on_to_the_next_provider(self, service, google, path):
        """Browsers keep the fragment in a redirect."""
        page = service.sign_in("google", redirect_to=f"{SITE}{path}?provider=google")
        assert fragment(page).keys() >= {"access_token"}
        assert [url for url in page.trail if url.startswith(google.url) and "access_token" in url] == []

    def test_cookie_is_host_only_http_only_and_expires_with_the_flow(self, service):
        header = service.client.get("/authorize?provider=google").headers["Set-Cookie"]
        pair, *attributes = header.split("; ")
        assert pair.partition("=")[2] == A_SECRET
        assert sorted(attribute for attribute in attributes if not attribute.startswith("Expires=")) == [
            "HttpOnly",
            "Max-Age=600",
            "Path=/",
            "SameSite=Lax",
        ]

    def test_cookie_is_secure_with_host_prefix_under_tls(self, make_service):
        service = make_service(AUTH_BASE_URL="https://auth.example.com")
        browser = service.browser()
        service.leave(browser, "google")
        (cookie,) = browser.cookies
        assert (cookie.name[:7], cookie.secure, cookie.http_only, cookie.same_site, cookie.path) == (
            "__Host-",
            True,
            True,
            "lax",
            "/",
        )

    def test_foreign_cookie_is_replaced(self, service):
        for planted in ("", "short", "x" * 44, "x" * 42 + "!", '"' + "x" * 43 + '"'):
            headers = {"Cookie": f"latchkey_flow={planted}"}
            response = service.client.get("/authorize?provider=google", headers=headers)
            assert response.headers["Set-Cookie"].split(";")[0].partition("=")[2] not in (planted, "x" * 43)

    def test_flow_is_stored_in_one_row_without_clear_secrets(self, service, database):
        browser = service.browser()
        sent = service.leave(browser, "google", redirect_to=APPLICATION, **WITH_CHALLENGE)
        row = database.one(
            "SELECT *, extract(epoch FROM expires_at - created_at)::int AS lifetime FROM oauth_flows"
        )
        assert (row.provider, row.redirect_to, row.code_challenge, row.user_id, row.lifetime) == (
            "google",
            APPLICATION,
            CHALLENGE,
            None,
            600,
        )
        stored = str(database.everything())
        assert not any(
            secret in stored for secret in (sent["state"], sent["nonce"], browser.cookies[0].value)
        )

    def test_scopes_replace_those_of_the_preset(self, service):
        assert (
            service.leave(service.browser(), "google", scopes="openid calendar")["scope"] == "openid calendar"
        )

    @cases(
        "name",
        [
            "state",
            "nonce",
            "redirect_uri",
            "client_id",
            "response_type",
            "response_mode",
            "code_challenge_method",
            "prompt",
            "iss",
        ],
    )
    def test_query_cannot_set_protected_parameters(self, service, google, name):
        extra = (
            {name: "of-mallory"}
            if name != "code_challenge_method"
            else {name: "s256", "code_challenge": CHALLENGE}
        )
        sent = service.leave(service.browser(), "google", **extra)
        assert "of-mallory" not in sent.values()
        assert (sent["code_challenge_method"], sent["code_challenge"] != CHALLENGE) == ("S256", True)
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

    def test_scopes_cannot_inject_parameters(self, service):
        sent = service.leave(
            service.browser(), "google", scopes="openid&redirect_uri=https://evil.example&state=x#y"
        )
        assert (sent["redirect_uri"], sent["state"]) == (service.callback("google"), A_SECRET)
        assert sent["scope"] == "openid&redirect_uri=https://evil.example&state=x#y"

    def test_head_has_no_effect(self, service, google, database):
        response = service.client.head("/authorize?provider=google")
        assert response.data == b""
        assert "Set-Cookie" not in response.headers
        assert database.count("oauth_flows") == 0


class TestBadRequests:
    @cases("name", ["nobody", "GOOGLE", "google ", "email", "phone", "../google", "discord", ""])
    def test_unknown_provider_is_refused(self, service, database, name):
        assert_error(
            service.client.get("/authorize", query_string={"provider": name}),
            400,
            "oauth_provider_not_supported",
            details=A_SENTENCE,
        )
        assert database.count("oauth_flows") == 0

    @cases(
        "sent",
        [
            "",
            "provider=google&provider=acme",
            "provider=google&redirect_to=a&redirect_to=b",
            f"provider=google&code_challenge={CHALLENGE}&code_challenge={CHALLENGE}",
            "provider=goo%00gle",
        ],
    )
    def test_missing_repeated_or_malformed_parameter_is_refused(self, service, database, sent):
        assert_error(service.client.get(f"/authorize?{sent}"), 400, "validation_failed", details=A_SENTENCE)
        assert database.count("oauth_flows") == 0


class TestCallback:
    def test_state_works_once(self, service, google, database):
        browser = service.browser()
        url = service.return_url(browser, "google")
        service.session(browser.visit(url))
        google.asked.clear()
        for _ in range(2):
            assert_failed(browser.visit(url), *STALE)
        assert (google.asked, database.count("sessions"), database.count("oauth_flows")) == ([], 1, 0)

    def test_one_of_many_concurrent_callbacks_succeeds(self, service, google, database):
        browser = service.browser()
        url = service.return_url(browser, "google")
        twins = service.twins(browser, 8)
        pages = at_once(8, lambda number: twins[number].visit(url))
        assert sorted(fragment(page).get("error_code", "none") for page in pages) == [
            "bad_oauth_state"
        ] * 7 + ["none"]
        assert (database.count("sessions"), google.paths().count("/token")) == (1, 1)

    @pytest.mark.parametrize(("seconds", "works"), [(590, True), (600, False)])
    def test_state_expires_after_ten_minutes(self, service, google, database, seconds, works):
        browser = service.browser()
        url = service.return_url(browser, "google")
        database.run(
            "UPDATE oauth_flows SET expires_at = expires_at - make_interval(secs => %(seconds)s)",
            seconds=seconds,
        )
        page = browser.visit(url)
        if works:
            service.session(page)
        else:
            assert_failed(page, *STALE)
            assert (database.count("users"), "/token" in google.paths()) == (0, False)

    @pytest.mark.parametrize("state", [None, "", "x", "x" * 43, "x" * 2048, "%", "ä" * 43])
    def test_unknown_state_is_refused(self, service, google, database, state):
        browser = service.browser()
        url = service.return_url(browser, "google")
        assert_failed(browser.visit(changed(url, state=state)), *STALE)
        assert (database.count("users"), "/token" in google.paths()) == (0, False)
        # The flow still works.
        service.session(browser.visit(url))

    @cases(
        "sent",
        ["code=a&code=b&state=x", "state=a&state=b", "state=%00", "iss=a&iss=b", "state=" + "x" * 2049],
    )
    def test_repeated_or_malformed_callback_parameter_is_refused(self, service, sent):
        assert_error(service.client.get(f"/callback?{sent}"), 400, "validation_failed", details=A_SENTENCE)

    def test_head_does_not_spend_the_state(self, service, google, database):
        browser = service.browser()
        url = service.return_url(browser, "google")
        cookie = browser.cookies[0]
        response = service.client.head(
            url.removeprefix(SITE), headers={"Cookie": f"{cookie.name}={cookie.value}"}
        )
        assert (
            response.status_code,
            response.data,
            database.count("oauth_flows"),
            "/token" in google.paths(),
        ) == (200, b"", 1, False)
        service.session(browser.visit(url))

    def test_two_tabs_of_a_browser_can_sign_in(self, service, google, acme):
        browser = service.browser()
        one, other = service.return_url(browser, "google"), service.return_url(browser, "acme")
        assert service.session(browser.visit(one)).get("/user").json["app_metadata"]["provider"] == "google"
        assert service.session(browser.visit(other)).get("/user").json["app_metadata"]["provider"] == "acme"

    def test_callback_without_a_code_is_refused(self, service, google, database):
        browser = service.browser()
        url = service.return_url(browser, "google")
        assert_failed(browser.visit(changed(url, code=None)), "bad_oauth_callback", "server_error")
        assert (database.count("users"), database.count("oauth_flows"), "/token" in google.paths()) == (
            0,
            0,
            False,
        )

    @cases("code", ["", "made-up", "x" * 60_000, "a&client_secret=b", "ä☃"])
    def test_unknown_code_is_refused(self, service, google, database, code):
        browser = service.browser()
        page = service.leave(browser, "google")
        response = browser.visit(
            f"{service.callback('google')}?{urlencode({'state': page['state'], 'code': code})}"
        )
        assert_failed(response, "bad_oauth_callback", "server_error")
        assert (database.count("users"), database.count("oauth_flows")) == (0, 0)

    @cases(
        ("said", "passed_on"),
        [
            ("access_denied", "access_denied"),
            ("temporarily_unavailable", "temporarily_unavailable"),
            ("server_error", "server_error"),
            ("invalid_scope", "server_error"),
            ("<script>alert(1)</script>", "server_error"),
            ("", "server_error"),
        ],
    )
    def test_error_of_the_provider_is_reported_in_own_words(self, service, google, database, said, passed_on):
        google.response = {
            "code": None,
            "error": said,
            "error_description": "words of mallory",
            "error_uri": "https://evil.example",
        }
        page = service.sign_in("google", redirect_to=APPLICATION)
        assert_failed(page, "bad_oauth_callback", passed_on, APPLICATION)
        assert "mallory" not in page.url
        assert (database.count("users"), database.count("oauth_flows"), "/token" in google.paths()) == (
            0,
            0,
            False,
        )

    def test_error_takes_precedence_over_a_code(self, service, google, database):
        google.response = {"error": "access_denied"}
        assert_failed(service.sign_in("google"), "bad_oauth_callback")
        assert (database.count("users"), "/token" in google.paths()) == (0, False)

    def test_error_without_a_flow_redirects_to_the_site(self, service):
        page = service.browser().visit(f"{SITE}/callback?error=access_denied&state={'x' * 43}")
        assert_failed(page, *STALE)

    def test_failure_is_logged_without_secrets(self, make_service, google, capfd):
        google.claims = {"nonce": "of-somebody-else"}
        service = make_service()
        browser = service.browser()
        url = service.return_url(browser, "google")
        browser.visit(url)
        logged = capfd.readouterr().err
        assert "provider_failed" in logged
        secrets = [*single(urlsplit(url).query).values(), browser.cookies[0].value, google.client_secret]
        assert not any(secret in logged for secret in secrets)


class TestChangesDuringAFlow:
    """Settings that change between /authorize and the callback."""

    def come_back(self, later, browser, url):
        """Open the callback at the service with its later settings."""
        there = later.browser()
        there.cookies = browser.cookies
        return there.visit(url)

    def test_flow_of_a_removed_provider_ends_with_an_error(self, service, make_app, google, database):
        browser = service.browser()
        url = service.return_url(browser, "google", redirect_to=APPLICATION)
        later = Service(make_app(**ALLOW_LIST))
        assert_failed(
            self.come_back(later, browser, url), "oauth_provider_not_supported", "server_error", APPLICATION
        )
        assert ("/token" in google.paths(), database.count("users"), database.count("oauth_flows")) == (
            False,
            0,
            0,
        )

    def test_flow_ends_like_a_stale_one_after_a_replaced_root_secret(
        self, service, make_service, google, database
    ):
        browser = service.browser()
        url = service.return_url(browser, "google", redirect_to=APPLICATION)
        assert_failed(
            self.come_back(make_service(AUTH_SECRET_KEY=secret("x")), browser, url), *STALE, APPLICATION
        )
        assert ("/token" in google.paths(), database.count("users"), database.count("oauth_flows")) == (
            False,
            0,
            0,
        )

    def test_flow_works_during_rotation_of_the_root_secret(self, make_service):
        service = make_service(AUTH_SECRET_KEY=secret("x"))
        browser = service.browser()
        url = service.return_url(browser, "google")
        service.session(
            self.come_back(make_service(AUTH_SECRET_KEY=f"{secret('y')},{secret('x')}"), browser, url)
        )

    def test_flow_ends_like_a_stale_one_when_its_row_is_damaged(self, service, google, database):
        browser = service.browser()
        url = service.return_url(browser, "google")
        database.run("UPDATE oauth_flows SET secrets = ''")
        assert_failed(browser.visit(url), *STALE)
        assert ("/token" in google.paths(), database.count("users")) == (False, 0)


class TestOtherBrowser:
    """Login CSRF: Mallory signs Alice's browser in to Mallory's user, or her own browser in as Alice."""

    def test_callback_in_a_browser_without_a_flow_is_refused(self, service, google, database):
        google.person = MALLORY
        url = service.return_url(service.browser(), "google")
        google.asked.clear()
        assert_failed(service.browser().visit(url), *STALE)
        assert (google.asked, database.count("users"), database.count("sessions")) == ([], 0, 0)

    def test_callback_in_a_browser_with_another_flow_is_refused(self, service, google, database):
        google.person = MALLORY
        url = service.return_url(service.browser(), "google")
        google.person = ALICE
        alices = service.browser()
        her_url = service.return_url(alices, "google")
        google.asked.clear()
        assert_failed(alices.visit(url), *STALE)
        assert (google.asked, database.count("users")) == ([], 0)
        assert service.session(alices.visit(her_url)).get("/user").json["email"] == ALICE["email"]

    def test_refused_callback_does_not_end_the_flow_of_the_right_browser(self, service):
        browser = service.browser()
        url = service.return_url(browser, "google")
        service.browser().visit(url)
        service.session(browser.visit(url))

    def test_code_of_another_browser_is_refused_with_the_own_state(self, service, google, database):
        # Mallory stole Alice's code: PKCE and the nonce bind it to Alice's flow.
        stolen = single(urlsplit(service.return_url(service.browser(), "google")).query)["code"]
        google.person = MALLORY
        mallorys = service.browser()
        hers = service.return_url(mallorys, "google")
        assert_failed(mallorys.visit(changed(hers, code=stolen)), "bad_oauth_callback", "server_error")
        assert database.count("users") == 0

    def test_form_of_another_site_comes_without_the_lax_cookie(self, service, google, database):
        browser = service.browser()
        url = service.return_url(browser, "google")
        browser.be_at("https://evil.example/")
        assert_failed(browser.post(service.callback("google"), single(urlsplit(url).query)), *STALE)
        assert "Cookie" not in browser.requests[-2][2]
        assert database.count("users") == 0

    def test_planted_cookie_does_not_bind_the_flow_of_alice(self, service, database):
        # Without TLS there is no __Host- prefix, and a neighbouring host can plant cookies: still each flow
        # has a state of its own.
        mallorys = service.browser()
        url = service.return_url(mallorys, "google")
        alices = service.browser()
        service.leave(alices, "google")
        assert mallorys.cookies[0].value != alices.cookies[0].value
        assert_failed(alices.visit(url), *STALE)


class TestOtherProvider:
    def test_state_is_refused_for_another_provider(self, service, google, acme, database):
        browser = service.browser()
        of_google = single(urlsplit(service.return_url(browser, "google")).query)
        of_acme = single(urlsplit(service.return_url(browser, "acme")).query)
        page = browser.visit(
            f"{service.callback('google')}?{urlencode({'state': of_google['state'], 'code': of_acme['code']})}"
        )
        assert_failed(page, "bad_oauth_callback", "server_error")
        assert "/token" not in acme.paths()
        assert database.count("users") == 0

    @cases("issuer", ["acme", "", "https://accounts.google.com", "{url}/", "{url}/x", "HTTP{url}"])
    def test_response_of_another_issuer_is_refused_before_its_code_is_redeemed(
        self, service, google, acme, database, issuer
    ):
        google.response = {"iss": acme.url if issuer == "acme" else issuer.format(url=google.url)}
        assert_failed(service.sign_in("google"), "bad_oauth_callback", "server_error")
        assert ("/token" in google.paths(), "/token" in acme.paths(), database.count("users")) == (
            False,
            False,
            0,
        )

    def test_response_with_the_right_issuer_is_accepted(self, service, google):
        google.response = {"iss": google.url}
        service.signed_in("google")

    def test_missing_iss_is_refused_when_the_issuer_announces_it(self, make_service, google, database):
        google.metadata = {"authorization_response_iss_parameter_supported": True}
        service = make_service()
        assert_failed(service.sign_in("google"), "bad_oauth_callback", "server_error")
        assert ("/token" in google.paths(), database.count("users")) == (False, 0)
        google.response = {"iss": google.url}
        service.signed_in("google")


class TestFormPost:
    """Apple responds with a form that its page posts from another site."""

    @pytest.fixture
    def apples(self, make_service, fakes):
        fakes.apple.person = {"sub": "001.alice", "email": "alice@example.com", "email_verified": "true"}
        return make_service(AUTH_BASE_URL="https://auth.example.com")

    def test_form_post_signs_in_with_a_cross_site_cookie(self, apples, fakes):
        browser = apples.browser()
        apples.sign_in("apple", browser)
        page = browser.submit()
        assert apples.session(page, apples.origin).get("/user").json["email"] == "alice@example.com"
        # The other one is of the page at the end.
        (cookie,) = [cookie for cookie in browser.cookies if cookie.same_site == "none"]
        assert (cookie.name[:7], cookie.secure, cookie.http_only) == ("__Host-", True, True)
        method, url, headers = browser.requests[-2]
        assert (method, url, headers["Sec-Fetch-Site"]) == ("POST", apples.callback("apple"), "cross-site")

    def test_authorization_request_asks_for_form_post(self, apples):
        sent = apples.leave(apples.browser(), "apple")
        assert (sent["response_mode"], sent["nonce"], sent["code_challenge_method"]) == (
            "form_post",
            A_SECRET,
            "S256",
        )

    def test_form_post_in_another_browser_is_refused(self, apples, database):
        browser = apples.browser()
        form = apples.sign_in("apple", browser).forms[0]
        other = apples.browser()
        apples.sign_in("apple", other)
        assert_failed(other.post(apples.callback("apple"), form.fields), *STALE, apples.origin)
        assert database.count("users") == 0

    def test_form_post_works_once(self, apples, database):
        browser = apples.browser()
        form = apples.sign_in("apple", browser).forms[0]
        browser.submit()
        browser.be_at("https://appleid.apple.example/")
        assert_failed(browser.post(apples.callback("apple"), form.fields), *STALE, apples.origin)
        assert database.count("sessions") == 1

    def test_cross_site_cookie_is_refused_for_a_redirecting_provider(self, apples, google, database):
        # Otherwise a form of any site could finish a flow of Google: Apple's cookie is sent across sites.
        browser = apples.browser()
        apples.leave(browser, "apple")
        url = apples.return_url(browser, "google")
        browser.cookies = [cookie for cookie in browser.cookies if cookie.same_site == "none"]
        assert_failed(browser.visit(url), *STALE, apples.origin)
        assert database.count("users") == 0

    def test_loopback_browser_accepts_the_cross_site_cookie_without_tls(self, service, fakes):
        fakes.apple.person = {"sub": "001.alice"}
        browser = service.browser()
        service.sign_in("apple", browser)
        service.session(browser.submit())


class TestTarget:
    def test_sign_in_redirects_to_the_requested_target(self, service):
        service.signed_in("google", redirect_to=APPLICATION)

    @pytest.mark.parametrize(
        "target",
        [
            "https://evil.example/",
            "//evil.example",
            "https://app.example.com.evil.example/",
            "javascript:alert(1)",
            "x",
        ],
    )
    def test_forbidden_target_is_replaced_by_the_site(self, service, target):
        service.session(service.sign_in("google", redirect_to=target))
        fragment(service.sign_in("google", redirect_to=target), SITE)

    @pytest.mark.parametrize("name", ["redirect_to", "provider", "code_challenge", "scopes"])
    def test_callback_parameters_cannot_change_the_target(self, service, name):
        browser = service.browser()
        url = service.return_url(browser, "google", redirect_to=APPLICATION)
        value = CHALLENGE if name == "code_challenge" else "https://app.example.com/other"
        service.session(browser.visit(changed(url, **{name: value})), APPLICATION)

    def test_each_flow_of_a_browser_keeps_its_target(self, service):
        browser = service.browser()
        targets = [f"https://app.example.com/{number}" for number in range(3)]
        urls = [service.return_url(browser, "google", redirect_to=target) for target in targets]
        for url, target in reversed(list(zip(urls, targets, strict=True))):
            service.session(browser.visit(url), target)

    def test_concurrent_flows_do_not_mix(self, service, google):
        targets = [f"https://app.example.com/{number}" for number in range(8)]
        pages = at_once(8, lambda number: service.sign_in("google", redirect_to=targets[number]))
        for page, target in zip(pages, targets, strict=True):
            service.session(page, target)

    def test_target_removed_from_the_list_is_replaced_by_the_site(self, service, make_service):
        browser = service.browser()
        url = service.return_url(browser, "google", redirect_to=APPLICATION)
        stricter = make_service(AUTH_REDIRECT_ALLOW_LIST="https://other.example.com/**")
        browser._sites = stricter.browser()._sites
        stricter.session(browser.visit(url), SITE)

    def test_target_keeps_its_query(self, service):
        target = f"{APPLICATION}?tab=1"
        service.session(service.sign_in("google", redirect_to=target), target)
        page = service.sign_in("google", redirect_to=target, **WITH_CHALLENGE)
        assert query(page, APPLICATION) == {"tab": "1", "code": A_SECRET}

    @pytest.mark.parametrize("failing", [False, True])
    def test_code_and_state_of_the_provider_are_not_passed_on(self, service, google, failing):
        google.claims = {"nonce": "other"} if failing else {}
        browser = service.browser()
        url = service.return_url(browser, "google", redirect_to=APPLICATION)
        end = browser.visit(url)
        sent = single(urlsplit(url).query)
        assert (end.url.startswith(APPLICATION), sent["code"] in end.url, sent["state"] in end.url) == (
            True,
            False,
            False,
        )


class TestSkipHttpRedirect:
    def test_skip_http_redirect_returns_a_url_without_starting_a_flow(self, service, database):
        response = service.client.get(
            "/authorize",
            query_string={"provider": "google", "redirect_to": APPLICATION, "skip_http_redirect": "true"},
        )
        assert_ok(response, {"url": ANYTHING})
        assert (database.count("oauth_flows"), "Set-Cookie" in response.headers) == (0, False)
        service.session(service.browser().visit(response.json["url"]), APPLICATION)

    def test_returned_url_starts_the_same_flow(self, service, google):
        asked = {"provider": "google", "redirect_to": APPLICATION, "scopes": "openid email", **WITH_CHALLENGE}
        url = service.client.get("/authorize", query_string=asked | {"skip_http_redirect": "true"}).json[
            "url"
        ]
        page = service.browser().visit(url)
        assert set(query(page, APPLICATION)) == {"code"}
        assert google.parameters("/authorize")["scope"] == "openid email"

    def test_returned_url_uses_the_base_url_for_any_host_header(self, service):
        response = service.client.get(
            "/authorize?provider=google&skip_http_redirect=true", headers={"Host": "evil.example"}
        )
        assert response.json["url"].startswith(f"{SITE}/authorize?")

    def test_unknown_provider_is_refused_with_skip_http_redirect(self, service):
        response = service.client.get("/authorize?provider=nobody&skip_http_redirect=true")
        assert_error(response, 400, "oauth_provider_not_supported", details=A_SENTENCE)

    @pytest.mark.parametrize("value", ["false", "", "1", "TRUE"])
    def test_other_value_of_skip_http_redirect_redirects(self, service, value):
        assert service.client.get(f"/authorize?provider=google&skip_http_redirect={value}").status_code == 302


def test_authorize_works_under_the_prefix(service):
    service.session(service.browser().visit(f"{SITE}/auth/v1/authorize?provider=google"))


def test_callback_accepts_only_form_or_json(service):
    response = service.client.post("/callback", data=b"<state/>", content_type="text/xml")
    assert_error(response, 415, "unsupported_media_type", details=A_SENTENCE)
    for body in (urlencode({"state": "x"}), json.dumps({"state": "x"})):
        kind = "application/json" if body.startswith("{") else "application/x-www-form-urlencoded"
        assert service.client.post("/callback", data=body, content_type=kind).status_code == 303


def test_callback_has_the_rate_limit_of_authorize(make_service):
    service = make_service(AUTH_RATE_LIMITS_ENABLED="true", AUTH_RATE_LIMIT_AUTHORIZE="2 per minute")
    statuses = [service.client.get(f"/callback?state={'x' * 43}").status_code for _ in range(3)]
    assert statuses == [303, 303, 429]
