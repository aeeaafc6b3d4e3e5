"""GET /authorize and the callback: a flow is bound to its browser, provider, time and parameters."""

from urllib.parse import urlencode, urlsplit

import pytest

from tests.support.answers import A_SENTENCE, ANYTHING, Like, assert_error, assert_ok
from tests.support.cases import cases
from tests.support.fake_provider import FakeProvider
from tests.support.links import CHALLENGE, WITH_CHALLENGE
from tests.support.oauth import APPLICATION, FAILED, SITE, STALE, assert_failed, fragment, query, single
from tests.support.server import at_once

pytest_plugins = ["tests.support.oauth_fixtures"]
ALICE = {"sub": "alice-at-google", "email": "alice@example.com", "email_verified": True}
MALLORY = {"sub": "mallory-at-google", "email": "mallory@example.com", "email_verified": True}
UNSUPPORTED = "oauth_provider_not_supported"
A_SECRET = Like("256 random bits", r"[\w-]{43}")
EXPECTED_PARAMETERS = {
    "response_type": "code",
    "client_id": "client-at-google",
    "redirect_uri": f"{SITE}/providers/google/callback",
    "scope": "openid email profile",
    "state": A_SECRET,
    "nonce": A_SECRET,
    "code_challenge": A_SECRET,
    "code_challenge_method": "S256",
}
QUERY = {"provider": "google", "redirect_to": APPLICATION, "skip_http_redirect": "true"}


@pytest.fixture(autouse=True)
def _people(google: FakeProvider, acme: FakeProvider) -> None:
    google.person = ALICE
    acme.person = {"sub": "alice-at-acme"}


@pytest.fixture
def flow(service):
    """A browser with a flow of Google, and the URL that it returns to."""
    browser = service.browser()
    return browser, service.return_url(browser, "google")


@pytest.fixture
def no_effect(google, acme, database):
    """Assert that no code was redeemed and no user signed in."""

    def check() -> None:
        assert "/token" not in google.paths() + acme.paths()
        assert (database.count("users"), database.count("sessions")) == (0, 0)

    return check


def changed(url: str, **parameters: str | None) -> str:
    """Return a URL with changed parameters; None removes one."""
    address, _, query_text = url.partition("?")
    parameters_left = {
        name: value for name, value in (single(query_text) | parameters).items() if value is not None
    }
    return f"{address}?{urlencode(parameters_left)}"


class TestAuthorize:
    def test_each_authorization_request_has_its_own_state_nonce_and_challenge(self, service, google):
        page = service.browser().visit(service.authorize("google"), stop=lambda url: not url.startswith(SITE))
        assert page.url.startswith(f"{google.url}/authorize?")
        first, second = single(urlsplit(page.url).query), service.leave(service.browser(), "google")
        assert (first, second) == (EXPECTED_PARAMETERS, EXPECTED_PARAMETERS)
        names = ("state", "nonce", "code_challenge")
        assert len({request[name] for request in (first, second) for name in names}) == 6

    @pytest.mark.parametrize("base", [SITE, "https://auth.example.com"])
    def test_authorize_responds_with_302_and_a_host_only_cookie_for_the_flow(self, make_service, base):
        response = make_service(AUTH_BASE_URL=base).client.get("/authorize?provider=google")
        assert (response.status_code, response.data) == (302, b"")
        assert response.headers["Cache-Control"] == "no-store"
        assert response.headers["Referrer-Policy"] == "no-referrer"
        (header,) = response.headers.getlist("Set-Cookie")
        pair, *attributes = header.split("; ")
        assert pair.partition("=")[2] == A_SECRET
        lasting = {attribute for attribute in attributes if not attribute.startswith("Expires=")}
        has_tls = base != SITE
        assert lasting - {"Secure"} == {"HttpOnly", "Max-Age=600", "Path=/", "SameSite=Lax"}
        assert (pair.startswith("__Host-"), "Secure" in lasting) == (has_tls, has_tls)

    def test_foreign_cookie_is_replaced(self, service):
        for planted in ("", "short", "x" * 44, "x" * 42 + "!", '"' + "x" * 43 + '"'):
            headers = {"Cookie": f"latchkey_flow={planted}"}
            response = service.client.get("/authorize?provider=google", headers=headers)
            assert response.headers["Set-Cookie"].split(";")[0].partition("=")[2] not in (planted, "x" * 43)

    @cases("path", ["/authorize", "/%61uthorize", "/auth/v1//authorize"])
    def test_tokens_of_a_sign_in_are_not_carried_on_to_the_next_provider(self, service, google, path):
        """Browsers keep the fragment in a redirect."""
        url = service.authorize("google", redirect_to=f"{SITE}{path}?provider=google")
        response = service.client.get(url)
        assert (response.status_code, "Location" in response.headers) == (400, False)

    def test_flow_is_stored_in_one_row_without_clear_secrets(self, service, database):
        browser = service.browser()
        parameters = service.leave(browser, "google", redirect_to=APPLICATION, **WITH_CHALLENGE)
        row = database.one(
            "SELECT provider, redirect_to, code_challenge, user_id,"
            " extract(epoch FROM expires_at - created_at)::int FROM oauth_flows"
        )
        assert row == ("google", APPLICATION, CHALLENGE, None, 600)
        stored = str(database.everything())
        for secret in (parameters["state"], parameters["nonce"], browser.cookies[0].value):
            assert secret not in stored

    @cases(
        "extra",
        [
            *({"scopes": scopes} for scopes in ("openid x", "openid&state=x&iss=https://evil.example#y")),
            dict.fromkeys(("state", "nonce", "redirect_uri", "client_id", "response_type"), "of-mallory"),
            dict.fromkeys(("response_mode", "prompt", "iss"), "of-mallory"),
            {"code_challenge_method": "s256", "code_challenge": CHALLENGE},
        ],
    )
    def test_query_can_set_the_scopes_and_no_protected_parameter(self, service, extra):
        parameters = service.leave(service.browser(), "google", **extra)
        assert parameters == EXPECTED_PARAMETERS | {
            "scope": extra.get("scopes", EXPECTED_PARAMETERS["scope"])
        }
        assert not {"of-mallory", CHALLENGE} & set(parameters.values())

    @cases(
        ("query_text", "error_code"),
        [
            *(
                (f"provider={name}", UNSUPPORTED)
                for name in ("", "GOOGLE", "google%20", "email", "../google")
            ),
            ("provider=nobody&skip_http_redirect=true", UNSUPPORTED),
            ("", "validation_failed"),
            ("provider=google&provider=acme", "validation_failed"),
            (f"provider=google&code_challenge={CHALLENGE}&code_challenge={CHALLENGE}", "validation_failed"),
            ("provider=goo%00gle", "validation_failed"),
        ],
    )
    def test_unknown_provider_or_malformed_parameter_is_refused(
        self, service, database, query_text, error_code
    ):
        assert_error(service.client.get(f"/authorize?{query_text}"), 400, error_code, details=A_SENTENCE)
        assert database.count("oauth_flows") == 0

    def test_page_about_an_unknown_provider_tells_developers_how_to_set_it_up(self, service):
        page = service.client.get("/authorize?provider=nobody", headers={"Accept": "text/html"})
        assert (page.status_code, page.mimetype) == (400, "text/html")
        assert "choose another way to sign in. <code" in page.text
        assert "is not set up here; docs/oauth.md says how</code>" in page.text


class TestCallback:
    def test_state_works_once_even_for_concurrent_callbacks(self, service, flow, google, database):
        browser, url = flow
        twins = service.twins(browser, 8)
        pages = at_once(8, lambda number: twins[number].visit(url))
        codes = sorted(fragment(page).get("error_code", "none") for page in pages)
        assert codes == ["bad_oauth_state"] * 7 + ["none"]
        assert (database.count("sessions"), google.paths().count("/token")) == (1, 1)
        google.requests.clear()
        assert_failed(browser.visit(url), *STALE)
        assert (google.requests, database.count("sessions"), database.count("oauth_flows")) == ([], 1, 0)

    def test_state_expires_in_ten_minutes(self, flow, database, no_effect):
        browser, url = flow
        database.run("UPDATE oauth_flows SET expires_at = expires_at - interval '10 minutes'")
        assert_failed(browser.visit(url), *STALE)
        no_effect()

    def test_unknown_state_is_refused_and_leaves_the_flow(self, service, flow, no_effect):
        browser, url = flow
        for state in (None, "", "x", "x" * 43, "x" * 2048, "%", "ä" * 43):
            assert_failed(browser.visit(changed(url, state=state)), *STALE)
        assert_failed(browser.visit(f"{SITE}/callback?error=access_denied&state={'x' * 43}"), *STALE)
        no_effect()
        service.session(browser.visit(url))

    @cases(
        "query_text",
        ["code=a&code=b&state=x", "state=a&state=b", "state=%00", "iss=a&iss=b", "state=" + "x" * 2049],
    )
    def test_repeated_or_malformed_callback_parameter_is_refused(self, service, query_text):
        assert_error(
            service.client.get(f"/callback?{query_text}"), 400, "validation_failed", details=A_SENTENCE
        )

    @cases("code", [None, "", "made-up", "x" * 60_000, "a&client_secret=b", "ä☃"])
    def test_missing_or_unknown_code_is_refused(self, service, google, database, code):
        browser = service.browser()
        parameters = {"state": service.leave(browser, "google")["state"], "code": code}
        parameters = {name: value for name, value in parameters.items() if value is not None}
        assert_failed(browser.visit(f"{service.callback('google')}?{urlencode(parameters)}"), *FAILED)
        assert (database.count("users"), database.count("oauth_flows")) == (0, 0)
        assert code is not None or "/token" not in google.paths()

    @cases(
        ("error", "code", "passed_on"),
        [
            ("access_denied", "x", "access_denied"),
            *((error, None, error) for error in ("access_denied", "temporarily_unavailable", "server_error")),
            *((error, None, "server_error") for error in ("invalid_scope", "<script>alert(1)</script>", "")),
        ],
    )
    def test_error_is_told_in_our_own_words(
        self, service, google, database, no_effect, error, code, passed_on
    ):
        words = {"error_description": "words of mallory", "error_uri": "https://evil.example"}
        google.response = words | {"error": error, "code": code}
        page = service.sign_in("google", redirect_to=APPLICATION)
        assert_failed(page, "bad_oauth_callback", passed_on, APPLICATION)
        assert "mallory" not in page.url
        assert database.count("oauth_flows") == 0
        no_effect()


class TestOtherBrowser:
    """Login CSRF: Mallory signs Alice's browser in to Mallory's user, or her own browser in as Alice."""

    def test_callback_in_a_browser_without_a_flow_is_refused(self, service, google, no_effect):
        google.person = MALLORY
        mallorys_browser, alices_browser = service.browser(), service.browser()
        url = service.return_url(mallorys_browser, "google")
        google.person = ALICE
        assert_failed(alices_browser.visit(url), *STALE)
        # The same in a browser with another flow. Both flows continue in their own browsers.
        alices_url = service.return_url(alices_browser, "google")
        assert_failed(alices_browser.visit(url), *STALE)
        no_effect()
        for browser, own_url, person in (
            (alices_browser, alices_url, ALICE),
            (mallorys_browser, url, MALLORY),
        ):
            assert service.session(browser.visit(own_url)).get("/user").json["email"] == person["email"]

    def test_code_of_another_browser_is_refused_with_the_own_state(self, service, flow, google, database):
        # Mallory stole Alice's code: PKCE and the nonce bind it to Alice's flow.
        stolen_code = single(urlsplit(flow[1]).query)["code"]
        google.person = MALLORY
        mallorys_browser = service.browser()
        mallorys_url = service.return_url(mallorys_browser, "google")
        assert_failed(mallorys_browser.visit(changed(mallorys_url, code=stolen_code)), *FAILED)
        assert database.count("users") == 0

    def test_form_of_another_site_comes_without_the_lax_cookie(self, service, flow, no_effect):
        browser, url = flow
        browser.be_at("https://evil.example/")
        assert_failed(browser.post(service.callback("google"), single(urlsplit(url).query)), *STALE)
        assert "Cookie" not in browser.requests[-2][2]
        no_effect()


class TestOtherProvider:
    @cases("issuer", ["{acme}", "", "https://accounts.google.com", "{url}/", "{url}/x", "HTTP{url}"])
    def test_code_of_another_issuer_is_not_redeemed(self, service, google, acme, no_effect, issuer):
        google.response = {"iss": issuer.format(url=google.url, acme=acme.url)}
        assert_failed(service.sign_in("google"), *FAILED)
        no_effect()

    def test_missing_iss_is_refused_if_announced(self, service, make_service, google, no_effect):
        google.metadata = {"authorization_response_iss_parameter_supported": True}
        announcing_service = make_service()
        assert_failed(announcing_service.sign_in("google"), *FAILED)
        no_effect()
        google.response = {"iss": google.url}
        for each in (announcing_service, service):
            each.signed_in("google")


class TestFormPost:
    """Apple responds with a form that its page posts from another site."""

    @pytest.fixture
    def apples(self, make_service, fakes):
        fakes.apple.person = {"sub": "001.alice", "email": "alice@example.com", "email_verified": "true"}
        return make_service(AUTH_BASE_URL="https://auth.example.com")

    def test_form_post_signs_in_once_by_a_cross_site_cookie_of_its_browser(self, apples, database):
        browser, other = apples.browser(), apples.browser()
        parameters = apples.leave(browser, "apple")
        assert (parameters["response_mode"], parameters["code_challenge_method"]) == ("form_post", "S256")
        form = apples.sign_in("apple", browser).forms[0]
        apples.sign_in("apple", other)
        assert_failed(other.post(apples.callback("apple"), form.fields), *STALE, apples.origin)
        assert database.count("users") == 0
        page = browser.submit()
        assert apples.session(page, apples.origin).get("/user").json["email"] == "alice@example.com"
        # The other cookie is of the page at the end.
        (cookie,) = [cookie for cookie in browser.cookies if cookie.same_site == "none"]
        assert (cookie.name[:7], cookie.secure, cookie.http_only) == ("__Host-", True, True)
        method, url, headers = browser.requests[-2]
        assert (method, url, headers["Sec-Fetch-Site"]) == ("POST", apples.callback("apple"), "cross-site")
        browser.be_at("https://appleid.apple.example/")
        assert_failed(browser.post(apples.callback("apple"), form.fields), *STALE, apples.origin)
        assert database.count("sessions") == 1

    def test_cross_site_cookie_is_refused_for_a_redirecting_provider(self, apples, database):
        # Otherwise a form of any site could finish a flow of Google: Apple's cookie is sent across sites.
        browser = apples.browser()
        apples.leave(browser, "apple")
        url = apples.return_url(browser, "google")
        browser.cookies = [cookie for cookie in browser.cookies if cookie.same_site == "none"]
        assert_failed(browser.visit(url), *STALE, apples.origin)
        assert database.count("users") == 0


class TestTarget:
    def test_sign_in_redirects_to_the_target_or_is_refused_if_it_is_forbidden(self, service):
        for target in (APPLICATION, f"{APPLICATION}?tab=1"):
            service.session(service.sign_in("google", redirect_to=target), target)
        for target in ("https://evil.example/", "//evil.example", "https://app.example.com.evil.example/"):
            response = service.client.get(service.authorize("google", redirect_to=target))
            assert response.status_code == 400

    def test_code_is_added_to_the_query_of_the_target(self, service):
        page = service.sign_in("google", redirect_to=f"{APPLICATION}?tab=1", **WITH_CHALLENGE)
        assert query(page, APPLICATION) == {"tab": "1", "code": A_SECRET}

    @cases("name", ["redirect_to", "provider", "code_challenge", "scopes"])
    def test_callback_parameters_cannot_change_the_target(self, service, name):
        browser = service.browser()
        url = service.return_url(browser, "google", redirect_to=APPLICATION)
        value = CHALLENGE if name == "code_challenge" else "https://app.example.com/other"
        service.session(browser.visit(changed(url, **{name: value})), APPLICATION)

    def test_each_flow_of_a_browser_keeps_its_provider_and_target(self, service):
        browser = service.browser()
        flows = [(name, f"https://app.example.com/{name}") for name in ("google", "acme", "google")]
        urls = [service.return_url(browser, name, redirect_to=target) for name, target in flows]
        for url, (name, target) in reversed(list(zip(urls, flows, strict=True))):
            user = service.session(browser.visit(url), target).get("/user").json
            assert user["app_metadata"]["provider"] == name

    @cases("claims", [{}, {"nonce": "other"}])
    def test_code_and_state_of_the_provider_are_not_passed_on(self, service, google, claims):
        google.claims = claims
        browser = service.browser()
        url = service.return_url(browser, "google", redirect_to=APPLICATION)
        final_url = browser.visit(url).url
        assert final_url.startswith(APPLICATION)
        assert not [value for value in single(urlsplit(url).query).values() if value in final_url]


def test_skip_http_redirect_returns_a_url_that_starts_the_flow_later(service, google, database):
    parameters = QUERY | {"scopes": "openid email"} | WITH_CHALLENGE
    response = service.client.get("/authorize", query_string=parameters, headers={"Host": "evil.example"})
    assert_ok(response, {"url": ANYTHING})
    assert response.json["url"].startswith(f"{SITE}/authorize?")
    assert (database.count("oauth_flows"), "Set-Cookie" in response.headers) == (0, False)
    page = service.browser().visit(response.json["url"])
    assert set(query(page, APPLICATION)) == {"code"}
    assert google.parameters("/authorize")["scope"] == "openid email"
    for value in ("false", "", "1", "TRUE"):
        path = f"/authorize?provider=google&skip_http_redirect={value}"
        assert service.client.get(path).status_code == 302
