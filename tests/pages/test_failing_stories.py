"""Stories in a real browser that fail: each page says why and what to do next, and that works.

They share a service with low limits, whose database can be away.
"""

import pytest

from tests.pages.test_stories import signed_in
from tests.support.browser import Browser, fill
from tests.support.cast import PASSWORD
from tests.support.trouble import AWAY

pytestmark = pytest.mark.browser
pytest_plugins = ["tests.support.browser_fixtures"]

DAVE, NOBODY = "dave@example.com", "anne@example.com"


@pytest.fixture(scope="module")
def settings(forwarder) -> dict[str, str]:
    names = ("LOGIN", "SIGNUP", "RECOVER", "VERIFY", "LOGIN_FAILURES")
    limits = {f"AUTH_RATE_LIMIT_{name}": "2 per hour" for name in names}
    return limits | {"DATABASE_URL": forwarder.database_url, "AUTH_RATE_LIMITS_ENABLED": "true"}


def use_up(site, path: str, **body: str) -> None:
    """Reach a limit of two requests by the API."""
    for _ in range(2):
        assert site.post(path, json=body).status_code < 429


def ask_for_code(page: Browser, email: str, outbox) -> str:
    fill(page, email=email)
    page.click("Send me a code instead")
    page.wait_for("Check your inbox")
    return outbox.last(email).code


def test_limited_sign_in_leads_to_a_code(page, site, here, alice, outbox):
    use_up(site, "/token?grant_type=password", email=NOBODY, password=PASSWORD)
    page.open(f"{here}/sign-in")
    fill(page, email=alice.email, password=PASSWORD)
    page.click("Sign in")
    page.wait_for("Too many tries. Come back in an hour, or try a code instead.")
    code = ask_for_code(page, alice.email, outbox)
    fill(page, code=code)
    page.click("Continue")
    page.wait_for("Your account")


def test_limited_codes_lead_to_the_password(page, site, here, alice):
    use_up(site, "/otp", email=NOBODY)
    page.open(f"{here}/sign-in")
    page.click("Forgot password?")
    page.wait_for("Forgot your password?")
    fill(page, email=alice.email)
    page.click("Send code")
    page.wait_for("Too many tries. Come back in an hour.")
    page.click("Back to sign in")
    page.wait_for("Sign in to Acme")
    fill(page, email=alice.email)
    page.click("Send me a code instead")
    page.wait_for("Too many codes were requested. Come back in an hour, or use your password.")
    fill(page, password=PASSWORD)
    page.click("Sign in")
    page.wait_for("Your account")


def test_limited_sign_up_leads_to_the_sign_in(page, site, here):
    use_up(site, "/signup", email=NOBODY, password=PASSWORD)
    page.open(f"{here}/sign-up")
    fill(page, email=DAVE, password=PASSWORD)
    page.click("Create account")
    page.wait_for("Too many tries. Come back in an hour.")
    page.click("Sign in")
    page.wait_for("Sign in to Acme")


def test_limited_code_works_when_the_time_has_come(page, site, here, alice, outbox, database):
    page.open(f"{here}/sign-in")
    code = ask_for_code(page, alice.email, outbox)
    use_up(site, "/verify", type="email", email=NOBODY, token="123456")
    fill(page, code=code)
    page.click("Continue")
    page.wait_for("Too many tries. Come back in an hour.")
    database.run("DELETE FROM request_counts")
    fill(page, code=code)
    page.click("Continue")
    page.wait_for("Your account")


def test_forms_and_pages_wait_for_the_database(page, here, alice, forwarder):
    page.open(f"{here}/sign-in")
    fill(page, email=alice.email, password=PASSWORD)
    forwarder.close()
    page.click("Sign in")
    page.wait_for(AWAY)
    forwarder.open()
    fill(page, password=PASSWORD)
    page.click("Sign in")
    page.wait_for("Your account")
    forwarder.close()
    page.open(f"{here}/account")
    page.wait_for(AWAY)
    forwarder.open()
    page.click("Try again")
    page.wait_for("Your account")


def test_devices_that_are_gone_stay_gone_and_ones_own_leads_to_the_sign_in(page, here, alice):
    laptop = alice.open_session()
    signed_in(page, here, alice)
    assert laptop.post("/logout?scope=local").status_code < 300
    page.run("document.querySelector('#devices [name=id] ~ button').click()")
    page.wait_for("The device is signed out.")
    assert alice.sign_in().post("/logout?scope=global").status_code < 300
    page.click("Add Passkey")
    page.wait_for("Your session has ended. Please sign in again.")
    signed_in(page, here, alice)
