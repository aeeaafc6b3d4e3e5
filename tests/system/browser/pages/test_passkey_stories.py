"""Passkeys and security keys in a real browser, with Chromium's own authenticator."""

import pytest

from tests.support import security_keys
from tests.support.browser import fill
from tests.support.browser_fixtures import AXE
from tests.support.users import PASSWORD
from tests.system.browser.pages.test_accessibility import problems
from tests.system.browser.pages.test_stories import signed_in, signed_in_with_new_passkey

pytest_plugins = ["tests.support.browser_fixtures"]


@pytest.fixture(scope="module")
def host() -> str:
    return "localhost"


@pytest.fixture
def passkey(page, origin, alice, authenticator) -> None:
    """A passkey that Alice has added on her account before signing out."""
    signed_in_with_new_passkey(page, origin, alice)
    page.forget()


def test_button_asks_for_the_passkey_while_the_field_offers_it(page, origin, passkey, authenticator):
    page.touch(authenticator, agrees=False)
    page.open(f"{origin}/sign-in")
    page.wait(lambda: page.run("document.querySelector('[name=challenge_id]').value"))
    # Once this second question is answered, the first one has reached the authenticator.
    page.run("PublicKeyCredential.isConditionalMediationAvailable()")
    page.touch(authenticator, agrees=True)
    page.click("Sign in with a passkey")
    page.wait_for("Your account")


def test_field_offers_the_passkey_until_it_is_removed(page, origin, passkey, authenticator, alice):
    page.open(f"{origin}/sign-in")
    # Chromium's authenticator chooses at once what a person would choose below the field.
    page.wait_for("Your account")
    # The device does not create another one.
    page.click("Add a passkey")
    page.wait_for("Create a passkey")
    page.click("Create a passkey")
    page.wait_for("No passkey was created. Try again, or use another device.")
    page.click("Back to your account")
    page.wait_for("Your account")
    page.click("Remove Passkey")
    page.wait_for("Remove “Passkey”?")
    page.click("Remove")
    page.wait_for("The passkey has been removed.")
    # The page has told the authenticator, so the field offers nothing.
    page.wait(lambda: page.kept_credentials(authenticator) == [])
    page.forget()
    signed_in(page, origin, alice)


def test_security_key_is_the_second_step_and_another_one_is_refused(page, origin, site, alice):
    key = page.add_authenticator(is_key=True)
    security_keys.enrol_in_browser(page, origin, alice.sign_in(client=site), "Blue key")

    def sign_in() -> None:
        page.open(f"{origin}/sign-in")
        fill(page, email=alice.email, password=PASSWORD)
        page.click("Sign in")
        page.wait_for("Use your security key.")

    sign_in()
    if AXE.exists():
        page.run(AXE.read_text())
        assert problems(page) == []
    page.click("Blue key")
    page.wait_for("Your account")
    page.forget()
    sign_in()
    page.clear(key)
    page.click("Blue key")
    page.wait_for("No security key was used. Try again, or choose another way.")
    page.click("Use another account")
    page.wait_for("You’re signed out")
    page.remove_authenticator(key)
