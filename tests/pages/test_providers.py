"""Providers on the pages: signing in, connecting and disconnecting."""

from urllib.parse import urlencode

import pytest

from tests.support.links import CHALLENGE, SITE
from tests.support.oauth import APPLICATION
from tests.support.pages import Visitor

pytest_plugins = ["tests.support.oauth_fixtures"]


@pytest.fixture(autouse=True)
def person(acme) -> None:
    """The person who is signed in at the provider, without an email."""
    acme.person = {"sub": "somebody-at-acme", "name": "Somebody"}


@pytest.fixture
def visitor(service) -> Visitor:
    return Visitor(service.app)


def link_of(visitor, provider: str) -> str:
    """Return the link of a provider's button."""
    hrefs = [part.partition('"')[0].replace("&amp;", "&") for part in visitor.page.text.split('href="')[1:]]
    return next(href for href in hrefs if f"provider={provider}&" in href)


def test_provider_signs_the_browser_in_without_tokens_in_urls(visitor, acme):
    visitor.visit("/sign-in")
    page = visitor.click(link_of(visitor, "acme"))
    assert page.url == f"{SITE}/account"
    assert "access_token" not in str(page.trail)
    assert visitor.session_cookie
    # The last way to sign in stays.
    assert "This is your last way to sign in." in visitor.remove("identity").text


def test_other_site_does_not_sign_the_browser_in_by_a_provider(visitor, acme, alice, database):
    """Login CSRF: at the provider, the browser may be signed in as the attacker."""
    visitor.signed_in_as(alice)
    visitor.be_at("https://evil.example/")
    page = visitor.click(
        f"{SITE}/authorize?{urlencode({'provider': 'acme', 'redirect_to': f'{SITE}/sign-in'})}"
    )
    assert (page.url, alice.email in page.text) == (f"{SITE}/account", True)
    assert database.count("sessions") == 1


def test_title_of_the_settings_is_on_buttons_and_in_the_account(make_service, alice):
    visitor = Visitor(make_service(AUTH_PROVIDER_ACME_TITLE="Acme & Sons").app)
    assert "Continue with Acme &amp; Sons" in visitor.visit("/sign-in").text
    assert "Acme &amp; Sons" in visitor.signed_in_as(alice).visit("/account").text


def test_application_gets_a_code_after_the_provider(visitor, acme):
    visitor.visit(f"/sign-in?{urlencode({'redirect_to': APPLICATION, 'code_challenge': CHALLENGE})}")
    assert visitor.click(link_of(visitor, "acme")).url.startswith(f"{APPLICATION}?code=")


def test_refusal_of_the_provider_comes_back_to_the_page(visitor, acme):
    acme.person = {}
    visitor.visit("/sign-in")
    page = visitor.click(link_of(visitor, "acme"))
    assert page.url.startswith(f"{SITE}/sign-in?")
    assert "The provider didn’t sign you in." in page.text


def test_account_is_connected_and_disconnected(visitor, acme, alice):
    visitor.signed_in_as(alice).visit("/account")
    visitor.send("/account/connect", provider="acme")
    page = visitor.submit()
    assert page.url == f"{SITE}/account?done=identity_linked"
    visitor.remove("identity")
    assert visitor.page.url.startswith(f"{SITE}/account?done=disconnected")
