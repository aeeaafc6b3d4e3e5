"""Signing in with a real OpenID provider (django-oauth-toolkit), which requires PKCE, through gunicorn."""

from urllib.parse import urlsplit

import pytest

from tests.support import oidc_provider
from tests.support.answers import ANYTHING, assert_error, assert_ok, token_response
from tests.support.oauth import assert_failed, fragment, new_user
from tests.support.oidc_provider import CLIENT_ID, CLIENT_SECRET, OidcProvider
from tests.support.processes import free_port
from tests.support.user_agent import UserAgent
from tests.support.users import Session

DAVE = new_user("django", "3", "dave@example.com", name="Dave")


@pytest.fixture(scope="module")
def running(serve, tmp_path_factory):
    """The provider, a client, and the URL of the service."""
    base = f"http://localhost:{free_port()}"
    callback = f"{base}/providers/django/callback"
    with OidcProvider(tmp_path_factory.mktemp("provider"), callback) as provider:
        of_client = {"ISSUER": provider.issuer, "CLIENT_ID": CLIENT_ID, "CLIENT_SECRET": CLIENT_SECRET}
        settings = {f"AUTH_PROVIDER_DJANGO_{name}": value for name, value in of_client.items()}
        settings |= {"AUTH_BASE_URL": base, "PORT": str(urlsplit(base).port)}
        with serve(AUTH_WORKERS="1", **settings) as (_, client):
            yield provider, client, base


@pytest.fixture
def sign_in(running, database, app):
    """Sign Dave in, in a new or a given browser, and return the last page."""

    def sign_in(browser=None):
        browser = browser or UserAgent()
        browser.visit(f"{running[2]}/authorize?provider=django")
        if "password" in browser.page.text:
            browser.submit(username="dave", password=oidc_provider.PASSWORD)
        return browser.submit(allow="Authorize")

    return sign_in


@pytest.fixture
def session_of(running):
    def session_of(page):
        tokens = fragment(page, running[2])
        assert set(tokens) == set(token_response({})) - {"user"}
        return Session(running[1], tokens["access_token"], tokens["refresh_token"], {})

    return session_of


def test_new_user_is_signed_in_and_returns_as_the_same(sign_in, session_of):
    browser = UserAgent()
    session = session_of(sign_in(browser))
    assert session.get("/user").json == DAVE
    assert session.claims["amr"] == [
        {"method": "oauth", "timestamp": session.claims["iat"], "provider": "django"}
    ]
    assert (session.claims["email"], session.claims["app_metadata"]) == (DAVE["email"], DAVE["app_metadata"])
    assert session.refresh().status_code == 200
    # Still logged in at the provider, which asks for consent each time.
    again, elsewhere = session_of(sign_in(browser)), session_of(sign_in())
    assert {each.claims["sub"] for each in (again, elsewhere)} == {session.claims["sub"]}
    assert len({each.id for each in (session, again, elsewhere)}) == 3


def test_refused_consent_redirects_with_an_error(running, database, app):
    browser = UserAgent()
    browser.visit(f"{running[2]}/authorize?provider=django")
    browser.submit(username="dave", password=oidc_provider.PASSWORD)
    assert_failed(browser.submit(), "bad_oauth_callback", target=running[2])
    assert (database.count("users"), database.count("oauth_flows")) == (0, 0)


def test_id_token_of_a_native_application_signs_in_once(running, database, app):
    token = running[0].id_token("dave", f"{running[2]}/providers/django/callback")
    body = {"provider": "django", "id_token": token}
    assert_ok(running[1].post("/token?grant_type=id_token", json=body), token_response(DAVE))
    again = running[1].post("/token?grant_type=id_token", json=body)
    assert_error(again, 400, "bad_oauth_callback", details=ANYTHING)
