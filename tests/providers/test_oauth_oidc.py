"""Signing in with a real OpenID provider (django-oauth-toolkit), through gunicorn."""

from collections.abc import Iterator
from urllib.parse import urlsplit

import pytest

from tests.support import oidc_provider
from tests.support.answers import A_TIMESTAMP, ANYTHING, Like, assert_error, token_response
from tests.support.cast import Session
from tests.support.links import VERIFIER, WITH_CHALLENGE
from tests.support.oauth import assert_failed, external, fragment, new_user, query, single
from tests.support.oidc_provider import CLIENT_ID, CLIENT_SECRET, OidcProvider
from tests.support.processes import free_port
from tests.support.server import ServerClient
from tests.support.user_agent import Page, UserAgent, origin_of

pytest_plugins = ["tests.support.oauth_fixtures"]
A_SECRET = Like("256 random bits", r"[\w-]{43}")


class World:
    """The provider and the service, which calls it `django`, and also `google`, which is trusted to link."""

    def __init__(self, provider: OidcProvider, client: ServerClient, port: int) -> None:
        self.provider = provider
        self.base = f"http://localhost:{port}"
        self.client = client

    def authorize(self, provider: str, **parameters: str) -> str:
        return f"{self.base}/authorize?" + "&".join(
            f"{name}={value}" for name, value in {"provider": provider, **parameters}.items()
        )

    def arrive(self, browser: UserAgent, url: str) -> Page:
        """Open a URL that redirects to the provider, and stop at its first page."""
        page = browser.visit(url)
        assert origin_of(page.url) == self.provider.origin, page.url
        return page

    def log_in(self, browser: UserAgent, person: str) -> Page:
        """Fill in the provider's form; the next page asks for consent."""
        return browser.submit(username=person, password=oidc_provider.PASSWORD)

    def sign_in(
        self, person: str, provider: str = "django", browser: UserAgent | None = None, **parameters: str
    ) -> Page:
        """Sign in, logging in at the provider first, and return the last page."""
        browser = browser or UserAgent()
        self.arrive(browser, self.authorize(provider, **parameters))
        self.log_in(browser, person)
        return browser.submit(allow="Authorize")

    def session(self, page: Page) -> Session:
        tokens = fragment(page, self.base)
        assert set(tokens) == set(token_response({})) - {"user"}
        return Session(self.client, tokens["access_token"], tokens["refresh_token"], {})


@pytest.fixture(scope="module")
def running(serve, tmp_path_factory) -> Iterator[World]:
    port = free_port()
    redirect_uris = [f"http://localhost:{port}/providers/{name}/callback" for name in ("django", "google")]
    with OidcProvider(tmp_path_factory.mktemp("provider"), *redirect_uris) as provider:
        of_client = {"ISSUER": provider.issuer, "CLIENT_ID": CLIENT_ID, "CLIENT_SECRET": CLIENT_SECRET}
        providers = {
            f"AUTH_PROVIDER_{name}_{key}": value
            for name in ("DJANGO", "GOOGLE")
            for key, value in of_client.items()
        }
        providers["AUTH_PROVIDER_GOOGLE_LINK_BY_EMAIL"] = "true"
        place = {"PORT": str(port), "AUTH_BASE_URL": f"http://localhost:{port}"}
        with serve(AUTH_WORKERS="1", **providers, **place) as (_, client):
            yield World(provider, client, port)


@pytest.fixture
def world(running: World, database, app) -> World:
    return running


def test_new_user_is_created_and_signed_in(world):
    page = world.sign_in("dave")
    session = world.session(page)
    expected = new_user("django", "3", "dave@example.com", name="Dave")
    assert session.get("/user").json == expected
    assert session.claims["amr"] == [{"method": "oauth", "timestamp": session.claims["iat"]}]
    assert (session.claims["email"], session.claims["app_metadata"]) == (
        "dave@example.com",
        expected["app_metadata"],
    )
    assert session.refresh().status_code == 200


def test_provider_is_called_as_the_specifications_say(world):
    browser = UserAgent()
    browser.visit(world.authorize("django"), stop=lambda url: url.startswith(world.provider.origin))
    asked = urlsplit(browser.page.url)
    assert f"{asked.scheme}://{asked.netloc}{asked.path}" == f"{world.provider.issuer}/authorize/"
    assert single(asked.query) == {
        "response_type": "code",
        "client_id": CLIENT_ID,
        "redirect_uri": f"{world.base}/providers/django/callback",
        "scope": "openid email profile",
        "state": A_SECRET,
        "nonce": A_SECRET,
        "code_challenge": A_SECRET,
        "code_challenge_method": "S256",
    }


def test_returning_user_is_the_same(world):
    browser = UserAgent()
    first = world.session(world.sign_in("dave", browser=browser))
    # Still logged in at the provider, which asks for consent each time.
    world.arrive(browser, world.authorize("django"))
    again = world.session(browser.submit(allow="Authorize"))
    elsewhere = world.session(world.sign_in("dave"))
    assert len({session.get("/user").json["id"] for session in (first, again, elsewhere)}) == 1
    assert len({session.id for session in (first, again, elsewhere)}) == 3


def test_two_accounts_are_two_users(world):
    dave, bob = (world.session(world.sign_in(person)).get("/user").json for person in ("dave", "bob"))
    assert dave["id"] != bob["id"]
    assert bob == new_user("django", "2", "bob@example.com", verified=False, name="Bob")


def test_trusted_provider_signs_in_the_user_of_the_address(world, alice):
    session = world.session(world.sign_in("alice", "google"))
    found = session.get("/user").json
    assert (found["id"], found["email"]) == (alice.id, alice.email)
    assert found["identities"] == [ANYTHING, external("google", "1", alice.email, True, name="Alice Liddell")]
    assert found["app_metadata"] == {"provider": "email", "providers": ["email", "google"]}
    assert alice.try_to_sign_in().status_code == 200


def test_untrusted_provider_does_not_sign_in_the_user_of_the_address(world, alice):
    session = world.session(world.sign_in("alice", "django"))
    found = session.get("/user").json
    assert (found["id"] != alice.id, found["email"], found["app_metadata"]["providers"]) == (
        True,
        None,
        ["django"],
    )


def test_refused_consent_redirects_with_an_error(world, database):
    browser = UserAgent()
    world.arrive(browser, world.authorize("django"))
    world.log_in(browser, "dave")
    assert_failed(browser.submit(), "bad_oauth_callback", target=world.base)
    assert (database.count("users"), database.count("oauth_flows")) == (0, 0)


def test_response_without_iss_is_refused_when_the_provider_announces_it(world, database):
    browser = UserAgent()
    world.arrive(browser, world.authorize("django"))
    world.log_in(browser, "dave")
    url = browser.submit(allow="Authorize", stop=lambda url: url.startswith(world.base)).url
    callback, _, sent = url.partition("?")
    assert single(sent)["iss"] == world.provider.issuer
    without = "&".join(f"{name}={value}" for name, value in single(sent).items() if name != "iss")
    assert_failed(browser.visit(f"{callback}?{without}"), "bad_oauth_callback", "server_error", world.base)
    assert database.count("users") == 0


def test_code_challenge_returns_an_authorization_code(world):
    code = query(world.sign_in("dave", **WITH_CHALLENGE), world.base)["code"]
    response = world.client.post(
        "/token?grant_type=pkce", json={"auth_code": code, "code_verifier": VERIFIER}
    )
    expected = new_user("django", "3", "dave@example.com", name="Dave")
    assert (response.status_code, response.json) == (200, token_response(expected))


def test_id_token_of_a_native_application_signs_in_once(world):
    token = world.provider.id_token("dave", f"{world.base}/providers/django/callback")
    body = {"provider": "django", "id_token": token}
    response = world.client.post("/token?grant_type=id_token", json=body)
    expected = new_user("django", "3", "dave@example.com", name="Dave")
    assert (response.status_code, response.json) == (200, token_response(expected))
    again = world.client.post("/token?grant_type=id_token", json=body)
    assert_error(again, 400, "bad_oauth_callback", details=ANYTHING)


def test_callback_is_refused_in_another_browser(world, database):
    browser = UserAgent()
    world.arrive(browser, world.authorize("django"))
    world.log_in(browser, "dave")
    url = browser.submit(allow="Authorize", stop=lambda url: url.startswith(world.base)).url
    assert_failed(UserAgent().visit(url), "bad_oauth_state", "invalid_request", world.base)
    assert database.count("users") == 0
    assert world.session(browser.visit(url)).get("/user").status_code == 200
    assert_failed(browser.visit(url), "bad_oauth_state", "invalid_request", world.base)
    assert database.count("sessions") == 1


def test_signed_in_user_links_an_identity(world, alice, outbox):
    session = alice.sign_in(client=world.client)
    response = session.get("/user/identities/authorize?provider=django")
    browser = UserAgent()
    browser.visit(response.json["url"])
    browser.submit()
    world.log_in(browser, "dave")
    assert fragment(browser.submit(allow="Authorize"), world.base) == {
        "message": ANYTHING,
        "type": "identity_linked",
    }
    linked = session.get("/user").json
    assert (linked["email"], linked["app_metadata"]["providers"]) == (alice.email, ["email", "django"])
    assert outbox.kinds() == [("identity_linked", alice.email)]
    assert world.session(world.sign_in("dave")).get("/user").json["id"] == alice.id


def test_settings_list_the_provider(world):
    settings = world.client.get("/settings").json
    enabled = {provider["name"] for provider in settings["external_providers"] if provider["enabled"]}
    assert (settings["external_providers_enabled"], enabled) == (True, {"django", "google"})


def test_unknown_provider_is_refused(world):
    assert_error(
        world.client.get("/authorize?provider=nobody"), 400, "oauth_provider_not_supported", details=ANYTHING
    )


def test_identity_records_the_last_sign_in(world):
    session = world.session(world.sign_in("dave"))
    (identity, _) = session.get("/user").json["identities"]
    assert identity["last_sign_in_at"] == A_TIMESTAMP
