"""Browsers that keep no cookies, and browsers that keep pages for the way back."""

import json
from collections.abc import Iterator

import pytest

from tests.support.browser import Browser, fill, opened
from tests.support.openid import authorize_path, insert_public_client
from tests.support.page_tour import ALICE
from tests.support.users import PASSWORD, register

pytest_plugins = ["tests.support.browser_fixtures"]

BLOCKED = "Your browser didn’t send a cookie with this form."


@pytest.fixture(scope="module")
def host() -> str:
    return "localhost"


@pytest.fixture
def without_cookies(tmp_path, origin) -> Iterator[Browser]:
    """Chromium whose user has blocked all cookies in its settings."""
    settings = tmp_path / "Default" / "Preferences"
    settings.parent.mkdir()
    settings.write_text(json.dumps({"profile": {"default_content_setting_values": {"cookies": 2}}}))
    with opened(tmp_path) as browser:
        browser.speak("en")
        yield browser


def test_sign_in_of_a_browser_that_blocks_cookies_says_so_keeps_the_address_and_opens_no_session(
    without_cookies, origin, site, service_role, database
):
    register(site, service_role, ALICE)
    page = without_cookies
    page.open(f"{origin}/sign-in")
    for _ in range(2):
        fill(page, email=ALICE, password=PASSWORD)
        page.click("Sign in")
        page.wait_for(BLOCKED)
        assert page.run("document.querySelector('[name=email]').value") == ALICE
        page.run("document.querySelector('[name=email]').value = ''")
    assert database.count("sessions") == 0
    assert database.count("request_counts") == 0


def test_application_of_a_browser_that_blocks_cookies_is_not_sent_in_a_circle(
    without_cookies, origin, application, site, database
):
    page = without_cookies
    client_id = insert_public_client(database, application)
    page.open(origin + authorize_path(client_id, redirect_uri=application))
    page.wait_for("Your browser didn’t send the cookie of this request.")
    assert "Allow cookies for this site, then go back to the application" in page.text
    assert database.count("oauth_requests", "user_id IS NOT NULL") == 0


@pytest.mark.parametrize("path", ["/account", "/new-password"])
def test_way_back_after_a_sign_out_shows_nothing_of_the_account(page, origin, site, service_role, path):
    register(site, service_role, ALICE)
    page.open(f"{origin}/sign-in")
    fill(page, email=ALICE, password=PASSWORD)
    page.click("Sign in")
    page.wait_for("Your account")
    page.open(origin + path)
    page.wait_for(ALICE)
    page.click("Sign out")
    page.wait_for("You’re signed out")
    page.go(-1)
    page.wait_for("Sign in to Acme")
    assert ALICE not in page.text
    # The address in the field would name the account, too.
    assert page.run("document.querySelector('[name=email]').value") == ""
