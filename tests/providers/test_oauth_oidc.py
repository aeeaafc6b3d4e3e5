"""Signing in with a real OpenID provider (django-oauth-toolkit), through gunicorn."""

from collections.abc import Iterator
from urllib.parse import urlencode, urlsplit

import pytest

from tests.support import oidc_provider
from tests.support.answers import ANYTHING, Like, assert_error, assert_ok, token_response
from tests.support.links import VERIFIER, WITH_CHALLENGE
from tests.support.oauth import FAILED, STALE, assert_failed, external, fragment, new_user, query, single
from tests.support.oidc_provider import CLIENT_ID, CLIENT_SECRET, OidcProvider
from tests.support.processes import free_port
from tests.support.server import ServerClient
from tests.support.user_agent import Page, UserAgent, origin_of
from tests.support.users import Session

pytest_plugins = ["tests.support.oauth_fixtures"]
A_SECRET = Like("256 random bits", r"[\w-]{43}")


class World:
    """The provider and the service, which calls it `django`, and also `google`, which is trusted to link."""

    def __init__(self, provider: OidcProvider, client: ServerClient, port: int) -> None:
        self.provider = provider
        self.base = f"http://localhost:{port}"
        self.client = client

    def authorize(self, provider: str, **parameters: str) -> str:
        return f"{self.base}/authorize?{urlencode({'provider': provider, **parameters})}"

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


@pytest.fixture
def begun(world: World) -> tuple[UserAgent, str]:
    """A browser that has agreed at the provider, and the URL that it is redirected to."""
    browser = UserAgent()
    world.arrive(browser, world.authorize("django"))
    world.log_in(browser, "dave")
    page = browser.submit(allow="Authorize", stop=lambda url: url.startswith(world.base))
    return browser, page.url


DAVE = new_user("django", "3", "dave@example.com", name="Dave")


def test_new_user_is_signed_in_and_returns_as_the_same(world):
    browser = UserAgent()
    page = world.sign_in("dave", browser=browser)
    session = world.session(page)
    assert session.get("/user").json == DAVE
    assert session.claims["amr"] == [{"method": "oauth", "timestamp": session.claims["iat"]}]
    assert (session.claims["email"], session.claims["app_metadata"]) == (DAVE["email"], DAVE["app_metadata"])
    assert session.refresh().status_code == 200
    # Still logged in at the provider, which asks for consent each time.
    world.arrive(browser, world.authorize("django"))
    again = world.session(browser.submit(allow="Authorize"))
    elsewhere = world.session(world.sign_in("dave"))
    assert {each.claims["sub"] for each in (again, elsewhere)} == {session.claims["sub"]}
    assert len({each.id for each in (session, again, elsewhere)}) == 3


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


def test_only_the_trusted_provider_signs_in_the_user_of_the_address(world, alice):
    other = world.session(world.sign_in("alice", "django")).get("/user").json
    assert (other["id"] != alice.id, other["email"]) == (True, None)
    assert other["app_metadata"]["providers"] == ["django"]
    found = world.session(world.sign_in("alice", "google")).get("/user").json
    assert (found["id"], found["email"]) == (alice.id, alice.email)
    assert found["identities"] == [ANYTHING, external("google", "1", alice.email, True, name="Alice Liddell")]
    assert found["app_metadata"] == {"provider": "email", "providers": ["email", "google"]}
    assert alice.try_to_sign_in().status_code == 200
    bob = world.session(world.sign_in("bob")).get("/user").json
    assert bob == new_user("django", "2", "bob@example.com", verified=False, name="Bob")


def test_refused_consent_redirects_with_an_error(world, database):
    browser = UserAgent()
    world.arrive(browser, world.authorize("django"))
    world.log_in(browser, "dave")
    assert_failed(browser.submit(), "bad_oauth_callback", target=world.base)
    assert (database.count("users"), database.count("oauth_flows")) == (0, 0)


def test_response_without_iss_is_refused_when_the_provider_announces_it(world, begun, database):
    browser, url = begun
    callback, _, sent = url.partition("?")
    assert single(sent)["iss"] == world.provider.issuer
    without = "&".join(f"{name}={value}" for name, value in single(sent).items() if name != "iss")
    assert_failed(browser.visit(f"{callback}?{without}"), *FAILED, world.base)
    assert database.count("users") == 0


def test_callback_works_once_and_only_in_its_browser(world, begun, database):
    browser, url = begun
    assert_failed(UserAgent().visit(url), *STALE, world.base)
    assert database.count("users") == 0
    assert world.session(browser.visit(url)).get("/user").status_code == 200
    assert_failed(browser.visit(url), *STALE, world.base)
    assert database.count("sessions") == 1


def test_code_challenge_returns_an_authorization_code(world):
    code = query(world.sign_in("dave", **WITH_CHALLENGE), world.base)["code"]
    body = {"auth_code": code, "code_verifier": VERIFIER}
    assert_ok(world.client.post("/token?grant_type=pkce", json=body), token_response(DAVE))


def test_id_token_of_a_native_application_signs_in_once(world):
    token = world.provider.id_token("dave", f"{world.base}/providers/django/callback")
    body = {"provider": "django", "id_token": token}
    assert_ok(world.client.post("/token?grant_type=id_token", json=body), token_response(DAVE))
    again = world.client.post("/token?grant_type=id_token", json=body)
    assert_error(again, 400, "bad_oauth_callback", details=ANYTHING)


def test_signed_in_user_links_an_identity(world, alice, outbox):
    session = alice.sign_in(client=world.client)
    browser = UserAgent()
    browser.visit(session.get("/user/identities/authorize?provider=django").json["url"])
    browser.submit()
    world.log_in(browser, "dave")
    done = {"message": ANYTHING, "type": "identity_linked"}
    assert fragment(browser.submit(allow="Authorize"), world.base) == done
    linked = session.get("/user").json
    assert (linked["email"], linked["app_metadata"]["providers"]) == (alice.email, ["email", "django"])
    assert outbox.kinds() == [("identity_linked", alice.email)]
    assert world.session(world.sign_in("dave")).claims["sub"] == alice.id
