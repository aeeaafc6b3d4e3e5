"""The offer of a passkey after a sign-in, and what the browser is told, in Chromium with its own authenticator."""

import base64

import pytest

from tests.support.browser import fill
from tests.support.links import CHALLENGE
from tests.support.users import PASSWORD

pytest_plugins = ["tests.support.browser_fixtures"]

# A password manager that makes a passkey unasked. Chromium has none, and never answers.
MANAGER = """
if (window.PublicKeyCredential) {
  const create = navigator.credentials.create.bind(navigator.credentials);
  navigator.credentials.create = ({ mediation, ...options }) => create(options);
  PublicKeyCredential.getClientCapabilities = async () => ({ conditionalCreate: true });
}
"""


@pytest.fixture(scope="module")
def host() -> str:
    return "localhost"


@pytest.fixture(scope="module")
def settings() -> dict[str, str]:
    return {"AUTH_PASSKEY_OFFER": "auto"}


@pytest.fixture
def application(site) -> str:
    return f"http://127.0.0.1:{site.port}/health"


def sign_in(page, origin, person, query="") -> None:
    page.open(f"{origin}/sign-in{query}")
    fill(page, email=person.email, password=PASSWORD)
    page.click("Sign in")


def test_button_makes_a_passkey_and_leads_to_the_application(
    page, origin, application, alice, authenticator, database
):
    sign_in(page, origin, alice, f"?redirect_to={application}&code_challenge={CHALLENGE}")
    page.wait_for("Sign in faster next time")
    page.click("Create a passkey")
    page.wait(lambda: page.url.startswith(f"{application}?code="))
    assert database.count("factors", "verified_at IS NOT NULL") == 1
    # The account page opens with the passkey, whose user is not asked again.
    page.forget()
    page.open(f"{origin}/sign-in")
    page.wait_for("Your account")


def test_not_now_is_remembered(page, origin, alice, authenticator):
    sign_in(page, origin, alice)
    page.wait_for("Sign in faster next time")
    page.click("Not now")
    page.wait_for("Your account")
    page.click("Sign out")
    page.wait_for("You’re signed out")
    sign_in(page, origin, alice)
    page.wait_for("Your account")


def test_browser_makes_a_passkey_by_itself_and_the_page_goes_on(page, origin, alice, authenticator, database):
    with page.on_each_page(MANAGER):
        sign_in(page, origin, alice)
        page.wait_for("Your account")
        page.wait_for("not used yet")
    assert database.count("factors", "verified_at IS NULL") == 1
    page.forget()
    page.open(f"{origin}/sign-in")
    page.wait_for("Your account")
    assert "not used yet" not in page.text
    assert database.count("factors", "verified_at IS NOT NULL") == 1


def test_authenticator_that_does_not_verify_its_user_makes_none(page, origin, alice, database):
    added = page.add_authenticator(verifies=False)
    sign_in(page, origin, alice)
    page.wait_for("Sign in faster next time")
    page.click("Create a passkey")
    page.wait_for("No passkey was created.")
    page.click("Not now")
    page.wait_for("Your account")
    assert database.count("factors") == 0
    page.remove_authenticator(added)


def test_browser_forgets_what_the_account_does_not_have(page, origin, alice, authenticator, database):
    """An operator removes it; another one is gone when it is used."""
    sign_in(page, origin, alice)
    page.wait_for("Sign in faster next time")
    page.click("Create a passkey")
    page.wait_for("The passkey has been added.")
    assert len(page.kept_credentials(authenticator)) == 1
    database.run("UPDATE users SET email = 'new@example.com'")
    page.open(f"{origin}/account")
    page.wait(lambda: page.kept_credentials(authenticator)[0]["userName"] == "new@example.com")
    database.run("DELETE FROM factors")
    page.open(f"{origin}/account")
    page.wait(lambda: page.kept_credentials(authenticator) == [])


def test_sign_in_with_a_passkey_that_is_gone_says_so_and_the_browser_forgets_it(
    page, origin, alice, authenticator, database
):
    sign_in(page, origin, alice)
    page.wait_for("Sign in faster next time")
    page.click("Create a passkey")
    page.wait_for("The passkey has been added.")
    (kept,) = page.kept_credentials(authenticator)
    assert len(base64.b64decode(kept["credentialId"])) >= 16
    database.run("DELETE FROM factors")
    page.forget()
    page.open(f"{origin}/sign-in")
    page.wait_for("That passkey no longer works here.")
    page.wait(lambda: page.kept_credentials(authenticator) == [])
