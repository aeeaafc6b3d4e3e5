"""Our pages with a captcha, in Chromium."""

import pytest

from tests.support.browser import fill
from tests.support.users import PASSWORD

pytestmark = pytest.mark.browser
pytest_plugins = ["tests.support.browser_fixtures"]


@pytest.fixture(scope="module")
def settings(mailing: dict[str, str]) -> dict[str, str]:
    return mailing | {"AUTH_CAPTCHA": "altcha"}


def test_sign_up_page_solves_while_the_user_types(page, here, post, database):
    page.open(f"{here}/sign-up")
    fill(page, email="dave@example.com", password=PASSWORD)
    page.click("Create account")
    page.wait_for("Check your inbox")
    assert post.read("dave@example.com", "Confirm")
    assert database.count("spent_captchas") == 1


def test_code_instead_of_a_password_solves_on_sending_and_the_password_needs_none(
    page, here, database, alice
):
    page.open(f"{here}/sign-in")
    fill(page, email=alice.email, password=PASSWORD)
    page.click("Sign in")
    page.wait_for("Your account")
    assert database.count("spent_captchas") == 0
    page.forget()
    page.open(f"{here}/sign-in")
    fill(page, email=alice.email)
    page.click("Send me a code instead")
    page.wait_for("Check your inbox")
    assert database.count("spent_captchas") == 1


def test_page_without_javascript_says_what_works(page, here, database):
    page.without_script(True)
    page.open(f"{here}/sign-up")
    page.wait_for("Turn on JavaScript to create an account")
    fill(page, email="dave@example.com", password=PASSWORD)
    page.click("Create account")
    page.wait_for("The check that you aren’t a robot failed. Try again.")
    assert (database.count("users"), database.count("outbox")) == (0, 0)
