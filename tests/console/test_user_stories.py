"""Whole stories of administrators about a user, in Chromium."""

from collections.abc import Iterator
from urllib.parse import urldefrag

import pytest

from tests.support.browser import Browser, fill
from tests.support.cast import PASSWORD
from tests.support.factors import App, set_up

pytestmark = pytest.mark.browser
pytest_plugins = ["tests.support.browser_fixtures"]


def crawl(console: Browser, here: str, *start: str) -> Iterator[str]:
    """Open these URLs of the console and all pages that they link to, and yield each."""
    waiting, seen = list(start), set(start)
    while waiting:
        url = waiting.pop()
        console.open(url)
        yield url
        links = console.run("[...document.querySelectorAll('main a, nav a')].map((link) => link.href)")
        new = {urldefrag(link).url for link in links if link.startswith(f"{here}/console")} - seen
        seen |= new
        waiting += sorted(new)
        assert len(seen) < 300


def find(console: Browser, text: str, email: str) -> None:
    """Search for a user by the beginning of the address, and open the page of the user."""
    console.press("/")
    console.wait(lambda: console.run("document.activeElement.id") == "search")
    console.run(f"document.activeElement.value = {text!r}")
    console.press("Enter")
    console.wait_for("whose email begins with")
    console.click(email)
    console.wait_for("What happened")


def test_mail_that_did_not_arrive_is_explained_and_sent_again(console, site, alice, database, outbox):
    site.post("/recover", json={"email": alice.email})
    database.run(
        "UPDATE outbox SET outcome = 'failed', finished_at = now(), secret = NULL, attempts = 3, last_error = '550 5.1.1 no such mailbox'"
    )
    find(console, "alice@ex", alice.email)
    assert "failed after 3 tries: 550 5.1.1 no such mailbox" in console.text
    console.click("Fix this, then send it again.")
    console.wait_for("Sends 1 message")
    console.click("Send again")
    console.wait_for("The message will be sent within seconds.")
    assert outbox.last(alice.email, kind="recovery").token


def test_user_is_banned_signed_out_and_let_in_again(console, site, alice):
    laptop = alice.sign_in(client=site)
    find(console, "ali", alice.email)
    console.click("Ban")
    console.wait_for("Ends 1 session.")
    console.click("Ban")
    console.wait_for("Banned until")
    assert laptop.get("/user").status_code == 403
    console.click("Lift the ban")
    console.wait_for("Lets 1 user sign in again.")
    console.click("Lift the ban")
    console.wait_for("Can sign in with the password")
    phone = alice.sign_in(client=site)
    console.open(console.url)
    console.click("End Unknown device")
    console.wait_for("Ends 1 session: Unknown device")
    console.click("End this session")
    console.wait_for("Signed in nowhere.")
    assert phone.get("/user").status_code == 401


def test_lost_factor_is_removed_without_javascript(page, here, site, carol, alice):
    codes: App = set_up(carol.open_session())[0]
    set_up(alice.sign_in(client=site), "Old phone")
    page.without_script()
    page.open(f"{here}/console/users/{alice.id}")
    fill(page, email=carol.email, password=PASSWORD)
    page.click("Sign in")
    page.wait_for("One more step")
    fill(page, code=codes.code())
    page.click("Continue")
    page.wait_for("Old phone")
    page.click("Remove Old phone")
    page.wait_for("Removes 1 authenticator app: “Old phone”.")
    fill(page, factor_code=codes.wrong_code())
    page.click("Remove")
    page.wait_for("The code must be a new code")
    fill(page, factor_code=codes.code(1))
    page.click("Remove")
    page.wait_for("No authenticator app, security key or passkey.")
