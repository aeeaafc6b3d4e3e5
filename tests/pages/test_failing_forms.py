"""Stories that fail in every way that they can before they end well, in a browser.

The database is away, a limit is reached, the user is banned, or a code, challenge or proof is wrong, expired or used:
each page says what to do next, and that works. tests/pages/test_failures.py has the other forms.
"""

from contextlib import suppress

import pytest

from tests.pages.test_stories import DAVE, signed_in, signed_in_with_new_passkey
from tests.support.browser import BrowserError, fill
from tests.support.failures import AWAY, FAILING_SETTINGS
from tests.support.links import later
from tests.support.users import PASSWORD

pytestmark = pytest.mark.browser
pytest_plugins = ["tests.support.browser_fixtures"]

WRONG = "This code is wrong or no longer works. Try again, or send another code."
TOO_LATE = "That took too long. Please try again."


@pytest.fixture(scope="module")
def host() -> str:
    return "localhost"


@pytest.fixture(scope="module")
def settings(forwarder) -> dict[str, str]:
    return FAILING_SETTINGS | {"DATABASE_URL": forwarder.database_url}


def test_sign_up(page, here, failures, outbox, database, forwarder):
    def sign_up() -> None:
        fill(page, email=DAVE, password=PASSWORD)
        page.click("Create account")

    def enter(code: str = "") -> None:
        fill(page, code=code or outbox.last(DAVE).code)
        page.click("Continue")

    page.open(f"{here}/sign-up")
    failures.without_database(sign_up)
    sign_up()
    page.wait_for("Check your inbox")
    enter(outbox.last(DAVE).wrong_code)
    page.wait_for(WRONG)
    failures.all(enter)
    later(database, hours=2)
    enter()
    page.wait_for(WRONG)
    page.click("Send another code")
    page.wait(lambda: len(outbox.sent(DAVE)) == 2)
    page.wait_for("We sent a code to")
    enter()
    page.wait_for("Your account")
    forwarder.close()
    page.open(f"{here}/account")
    page.wait_for(AWAY)
    forwarder.open()
    page.click("Try again")
    page.wait_for("Your account")


def test_passkey(page, here, failures, database, authenticator, alice):
    signed_in(page, here, alice)

    def add() -> None:
        page.click("Add Passkey")

    failures.without_database(add, "Continue", "Your account")
    add()
    page.wait_for("Add a passkey")
    database.run("UPDATE factor_challenges SET expires_at = now()")
    page.click("Create a passkey")
    page.wait_for(TOO_LATE)
    # The device has kept the passkey, and would offer it.
    page.clear(authenticator)
    page.click("Continue")
    page.wait_for("Your account")
    failures.over_limit(add, "Continue", "Your account")
    failures.banned_meanwhile(add, alice)
    signed_in_with_new_passkey(page, here, alice)
    page.forget()

    def use() -> None:
        page.touch(authenticator, agrees=True)
        # The field of the email may have sent it already.
        with suppress(BrowserError):
            page.click("Sign in with a passkey")

    page.touch(authenticator, agrees=False)
    page.open(f"{here}/sign-in")
    failures.without_database(lambda: page.click("Sign in with a passkey"))
    page.open(f"{here}/sign-in")
    page.wait(lambda: page.run("document.querySelector('[name=challenge_id]').value"))
    failures.over_limit(lambda: page.click("Sign in with a passkey"))
    failures.banned(use)
    page.touch(authenticator, agrees=False)
    page.forget()
    page.open(f"{here}/sign-in")
    fill(page, email=alice.email, password=PASSWORD)
    page.click("Sign in")
    page.wait_for("One more step")
    database.run("UPDATE factor_challenges SET expires_at = now()")
    use()
    page.wait_for(TOO_LATE)
    failures.over_limit(use)
    use()
    page.wait_for("Your account")
