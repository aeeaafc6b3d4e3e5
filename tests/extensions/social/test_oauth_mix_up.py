"""Mix-up attacks (RFC 9700, section 4.4): no provider receives the code of another.

Built-in providers at their own host return to /callback, all others to their own redirect URI.
"""

from dataclasses import fields, replace
from typing import Any
from urllib.parse import urlencode, urlsplit

import pytest

from auth.core.providers.client import Provider
from auth.core.settings.presets import PRESETS
from auth.core.settings.providers import ProviderSettings
from tests.support.cases import cases
from tests.support.fake_provider import FakeProvider, GitHub
from tests.support.oauth import FAILED, SITE, STALE, Fakes, Service, assert_failed, single
from tests.support.user_agent import Page

pytest_plugins = ["tests.support.oauth_fixtures"]
CALLBACK = f"{SITE}/callback"
GOOGLE = "https://accounts.google.com"
ENDPOINTS = ("authorize", "token", "userinfo")
TENANT = "https://login.microsoftonline.com/11111111-1111-1111-1111-111111111111"


@pytest.fixture(autouse=True)
def _people(acme: FakeProvider, google: FakeProvider, github: GitHub) -> None:
    google.person = {"sub": "alice-at-google", "email": "alice@example.com", "email_verified": True}
    acme.person = {"sub": "alice-at-acme"}
    github.be(1001, "alice@example.com")


@pytest.fixture
def at_home(monkeypatch, fakes: Fakes) -> None:
    """Make the presets of GitHub and Google name the hosts of the fakes."""
    names = ("authorize_url", "token_url", "userinfo_url", "emails_url")
    paths = (GitHub.AUTHORIZE, GitHub.TOKEN, GitHub.USERINFO, GitHub.EMAILS)
    urls: Any = {name: fakes.github.url + path for name, path in zip(names, paths, strict=True)}
    monkeypatch.setitem(PRESETS, "github", replace(PRESETS["github"], **urls))
    monkeypatch.setitem(PRESETS, "google", replace(PRESETS["google"], issuer=fakes.google.url))
    fakes.github.registered = CALLBACK


def received(provider: FakeProvider, code: str) -> bool:
    """Whether a provider received a code anywhere in a request."""
    return any(code in str(request) for request in provider.requests)


class TestHostileProvider:
    """Mallory runs acme, and redirects Alice from there to GitHub with acme's state; Alice authorized GitHub
    before.

    The code_challenge is that of a flow of Mallory's, in which the code would sign her in as Alice. GitHub
    sends no `iss`.
    """

    def bring(
        self, service: Service, hostile: str, hostile_provider: Any, honest: Any, **changes: str
    ) -> Page:
        browser = service.browser()
        parameters = service.leave(service.browser(), honest.name)
        crossed_parameters = parameters | {"state": service.leave(browser, hostile)["state"]} | changes
        browser.be_at(f"{hostile_provider.url}/authorize")
        return browser.click(f"{honest.url}{honest.AUTHORIZE}?{urlencode(crossed_parameters)}")

    @pytest.mark.parametrize(
        ("hostile", "honest", "is_at_home"),
        [
            *(("acme", "github", True), ("acme", "google", True), ("acme", "google", False)),
            # AUTH_PROVIDER_GITLAB_ISSUER=https://git.example.com is run by the operator of that host.
            *(("gitlab", "github", True), ("apple", "github", True)),
        ],
    )
    def test_provider_cannot_obtain_the_code_of_another(
        self, request, make_service, fakes, acme, database, capfd, hostile, honest, is_at_home
    ):
        if is_at_home:
            request.getfixturevalue("at_home")
        unset = dict.fromkeys(f"AUTH_PROVIDER_APPLE_{key}" for key in ("PRIVATE_KEY", "TEAM_ID", "KEY_ID"))
        service = make_service(**(unset if hostile == "apple" else {}) | acme.settings(hostile))
        provider = getattr(fakes, honest)
        page = self.bring(service, hostile, acme, provider)
        (code,) = provider.grants
        assert_failed(page, *FAILED)
        assert (received(acme, code), database.count("users"), database.count("oauth_flows")) == (False, 0, 1)
        assert "another provider" in capfd.readouterr().err

    @pytest.mark.parametrize("path", ["{base}", "{base}/", "{base}/acme", "{base}{own}", "{site}{own}"])
    def test_no_path_below_the_redirect_uri_leaks(self, at_home, make_service, acme, github, database, path):
        """GitHub sends codes to any path below the registered one that a flow asks for."""
        redirect_uri = path.format(base=CALLBACK, site=SITE, own="/providers/acme/callback")
        self.bring(make_service(), "acme", acme, github, redirect_uri=redirect_uri)
        assert len(github.grants) == (0 if path == "{site}{own}" else 1)
        assert (any(received(acme, code) for code in github.grants), database.count("users")) == (False, 0)


def redirect_uri(name: str, settings: dict[str, str]) -> str:
    values: dict[str, Any] = {each.name: "" for each in fields(ProviderSettings)}
    values |= {"client_ids": ("x",), "link_by_email": None}
    return Provider(name, ProviderSettings(**values | settings), SITE).redirect_uri


FACEBOOK = {"authorize_url": "https://www.facebook.com/x", "token_url": "https://graph.facebook.com/"}
AZURE = {"issuer": f"{TENANT}/v2.0", "authorize_url": f"{TENANT}/oauth2/v2.0/authorize"}
OTHER_TOKEN_URLS = [
    *(f"https://github.com{rest}/x" for rest in (".evil.example", ":8443", ".")),
    "https://gitlab.com/x",
]


class TestRedirectUri:
    @cases(
        ("name", "settings"),
        [
            *(("github", {}), ("discord", {}), ("facebook", FACEBOOK), ("azure", AZURE)),
            ("google", {"authorize_url": f"{GOOGLE}/x", "issuer": GOOGLE}),
        ],
    )
    def test_preset_of_any_version_returns_to_the_common_callback(self, name, settings):
        assert redirect_uri(name, settings) == CALLBACK

    @cases(
        ("name", "settings"),
        [
            *(("github", {f"{key}_url": "https://github.example.com/x"}) for key in (*ENDPOINTS, "emails")),
            *(("github", {"token_url": url}) for url in OTHER_TOKEN_URLS),
            ("acme", {f"{key}_url": "https://github.com/x" for key in ENDPOINTS}),
        ],
    )
    def test_provider_or_preset_at_another_host_has_its_own_redirect_uri(self, name, settings):
        assert redirect_uri(name, settings) == f"{SITE}/providers/{name}/callback"

    def test_redirect_uris_have_the_base_url_and_none_is_below_another(self, at_home, make_service, fakes):
        base = "https://example.com/auth/v1"
        providers = make_service(AUTH_BASE_URL=base).parts.providers
        assert providers["acme"].redirect_uri == f"{base}/providers/acme/callback"
        uris = {f"{provider.redirect_uri}/" for provider in providers.values()}
        assert len(uris) == len(fakes.all) - 1
        assert not any(uri.startswith(other) for uri in uris for other in uris - {uri})


class TestCallback:
    """A flow ends at the redirect URI of its provider; there is no second try."""

    @cases(
        "path",
        [
            *("/callback", "/auth/v1/callback", "/providers/acme/callback", "/providers/nobody/callback"),
            "/providers/GOOGLE/callback",
        ],
    )
    @cases("method", ["get", "post", "error"])
    def test_callback_of_another_provider_ends_the_flow(self, service, google, database, path, method):
        browser = service.browser()
        url = service.return_url(browser, "google")
        parameters = single(urlsplit(url).query) | ({"error": "access_denied"} if method == "error" else {})
        # A form of the same site, which the browser sends with its cookie.
        browser.be_at(f"{SITE}/")
        new_url = f"{SITE}{path}?{urlencode(parameters)}"
        page = browser.post(SITE + path, parameters) if method == "post" else browser.visit(new_url)
        assert_failed(page, *FAILED)
        assert_failed(browser.visit(url), *STALE)
        assert ("/token" in google.paths(), database.count("users")) == (False, 0)

    @pytest.mark.parametrize(
        "path",
        ["/providers/github/callback", "/auth/v1/providers/github/callback", "/providers/acme/callback"],
    )
    def test_preset_is_refused_at_other_callbacks(self, at_home, make_service, github, database, path):
        service = make_service()
        browser = service.browser()
        url = service.return_url(browser, "github")
        assert url.startswith(f"{CALLBACK}?")
        assert_failed(browser.visit(url.replace(CALLBACK, f"{SITE}{path}")), *FAILED)
        assert (github.TOKEN in github.paths(), database.count("users")) == (False, 0)

    @cases("name", ["google", "nobody", "a%00b", "%F0%9F%98%80", "x" * 2000])
    def test_callback_without_a_flow_does_not_reveal_provider_names(self, service, name):
        page = service.browser().visit(f"{SITE}/providers/{name}/callback?state={'x' * 43}&code=x")
        assert_failed(page, *STALE)


class TestTrust:
    """A provider at another host than the preset of its name is not trusted to verify addresses."""

    @pytest.fixture
    def make_default(self, make_app, fakes):
        """Make a service with the default trust in each provider."""
        settings = {name: value for name, value in fakes.settings().items() if "LINK_BY_EMAIL" not in name}
        return lambda: Service(make_app(fresh=True, **settings))

    @pytest.mark.parametrize("provider", ["google", "github"])
    def test_preset_at_its_own_host_is_trusted_to_link(self, at_home, make_default, alice, provider):
        assert make_default().user(provider)["id"] == alice.id

    @pytest.mark.parametrize("provider", ["google", "github", "acme"])
    def test_preset_at_another_host_is_not_trusted(self, make_default, acme, alice, provider):
        acme.person = {"sub": "alice-at-acme", "email": alice.email, "email_verified": True}
        user = make_default().user(provider)
        assert (user["id"] != alice.id, user["email"]) == (True, None)
