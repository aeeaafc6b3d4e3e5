"""An organization sets up its sign-in in a real browser, from the first click to the second employee."""

import sys

import pytest

from tests.support.browser import fill
from tests.support.customers import Customers
from tests.support.dns_server import DnsServer
from tests.support.processes import GUNICORN
from tests.system.browser.pages.test_organization_stories import found

pytest_plugins = ["tests.support.browser_fixtures"]


@pytest.fixture(scope="module")
def names():
    with DnsServer({}) as server:
        yield server


@pytest.fixture(scope="module")
def acme():
    """A company with a provider, and the people at it."""
    with Customers() as customers:
        yield customers.acme


@pytest.fixture(scope="module")
def settings(names: DnsServer) -> dict[str, str]:
    port = str(names.resolver.port)
    return {"AUTH_ORGANIZATIONS": "users", "AUTH_SSO": "true", "OWN_NAMES_PORT": port}


@pytest.fixture(scope="module")
def gunicorn() -> list[str]:
    return [sys.executable, *GUNICORN, "--config", "tests/support/own_providers.conf.py"]


def test_owner_sets_up_the_sign_in_and_a_second_employee_signs_in(page, origin, alice, acme, names, database):
    found(page, origin, alice)
    page.click("Open Single sign\u2011on (SSO)")
    page.wait_for("Add domain")
    fill(page, domain="example.com")
    page.click("Add domain")
    page.wait_for("Not verified yet")
    record = page.run("[...document.querySelectorAll('#domains code')].map(each => each.textContent)")
    names.texts[record[0]] = record[1]
    page.click("Check example.com")
    page.wait_for("The domain has been verified.")
    page.click("Connect identity provider")
    page.wait_for("Where do your employees sign in?")
    page.click("Another OpenID provider")
    page.wait_for("Client secret")
    provider = acme.provider
    fill(page, issuer=provider.url, client_id=provider.client_id, client_secret=provider.client_secret)
    page.click("Connect")
    page.wait_for("Now test the sign\u2011in.")
    acme.be("1", "alice@example.com")
    page.click("Test sign\u2011in Initech")
    page.wait_for("Nobody else is affected until you turn it on.")
    page.click("Test sign\u2011in")
    page.wait_for("Test passed. Turn it on for everyone at example.com.")
    page.click("Turn on Initech")
    page.wait_for("From now on")
    page.click("Turn on")
    page.wait_for("Single sign\u2011on is on.")
    page.click("Require Sign\u2011in with your identity provider")
    page.wait_for("All members can sign in this way.")
    page.click("Require")
    page.wait_for("All members now need to sign in with your identity provider.")
    page.forget()
    acme.be("2", "dave@example.com")
    page.open(f"{origin}/sign-in")
    page.wait_for("Sign in to Acme")
    fill(page, email="dave@example.com", password="any password")
    page.click("Sign in")
    page.wait_for("Your account")
    assert "Initech" in page.text
    assert "asks you to sign in" not in page.text
    assert database.count("memberships", "added_by = 'provider' AND role = 'member'") == 1
