"""Passkeys in a real browser, with Chromium's own authenticator."""

import pytest

from tests.pages.test_stories import signed_in

pytestmark = pytest.mark.browser
pytest_plugins = ["tests.support.browser_fixtures"]


@pytest.fixture(scope="module")
def host() -> str:
    return "localhost"


@pytest.fixture
def passkey(page, here, alice, authenticator) -> None:
    """A passkey of Alice, who has added it on her account and signed out."""
    signed_in(page, here, alice)
    page.click("Add Passkey")
    page.wait_for("Add a passkey")
    page.click("Create a passkey")
    page.wait_for("One more step")
    page.click("Sign in with a passkey")
    page.wait_for("Your account")
    page.forget()


def test_email_field_offers_the_passkey(page, here, passkey):
    page.open(f"{here}/sign-in")
    # Chromium's authenticator chooses at once what a person would choose below the field.
    page.wait_for("Your account")


def test_button_asks_for_the_passkey_while_the_field_offers_it(page, here, passkey, authenticator):
    page.touch(authenticator, agrees=False)
    page.open(f"{here}/sign-in")
    page.wait(lambda: page.run("document.querySelector('[name=challenge_id]').value"))
    page.touch(authenticator, agrees=True)
    page.click("Sign in with a passkey")
    page.wait_for("Your account")


def test_removed_passkey_is_refused_and_the_password_still_works(page, here, passkey, authenticator, alice):
    page.open(f"{here}/sign-in")
    page.wait_for("Your account")
    page.click("Remove Passkey")
    page.wait_for("The passkey is removed.")
    page.forget()
    page.open(f"{here}/sign-in")
    page.wait_for("That passkey did not work.")
    page.touch(authenticator, agrees=False)
    signed_in(page, here, alice)
