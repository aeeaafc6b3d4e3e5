"""Links opened on a phone, which an application on a desktop asked for by our pages, in either order."""

from urllib.parse import urlencode

import pytest

from tests.pages.test_stories import traded
from tests.support.browser import Browser, fill
from tests.support.cast import PASSWORD
from tests.support.links import CHALLENGE

pytestmark = pytest.mark.browser
pytest_plugins = ["tests.support.browser_fixtures"]

DAVE, NEW, NEW_PASSWORD = "dave@example.com", "new@example.com", "Fresh-Horse-2"
USED = "This link was used in another browser."


@pytest.fixture(scope="module")
def settings(mailing: dict[str, str]) -> dict[str, str]:
    return mailing


@pytest.fixture
def desktop(page) -> Browser:
    page.resize(1280, 800)
    return page


@pytest.fixture
def ask(desktop, here, application, post):
    """Ask for a mail on a page, as an application's user, and return the mail."""

    def ask(path: str, subject: str, **fields: str):
        query = urlencode({"redirect_to": application, "code_challenge": CHALLENGE})
        desktop.open(f"{here}/{path}?{query}")
        fill(desktop, **fields)
        desktop.click(
            {"sign-in": "Send me a code instead", "sign-up": "Create account"}.get(path, "Send code")
        )
        desktop.wait_for("Check your inbox")
        return post.read(fields["email"], subject)

    return ask


@pytest.fixture(params=[True, False], ids=["with script", "without script"])
def has_script(desktop, request) -> bool:
    desktop.without_script(not request.param)
    return request.param


def go_on(desktop: Browser, has_script: bool) -> None:
    if not has_script:
        desktop.click("I have opened the link")


def type_in(desktop: Browser, code: str) -> None:
    fill(desktop, code=code)
    desktop.click("Continue")


def test_sign_up_confirmed_on_a_phone_goes_on_at_the_desktop(
    desktop, phone, site, application, ask, has_script
):
    phone.open(ask("sign-up", "Confirm your email address", email=DAVE, password=PASSWORD).link)
    phone.wait_for("Then return to the window where you signed up.")
    phone.click("Continue")
    phone.wait_for("Your email address is confirmed")
    go_on(desktop, has_script)
    assert traded(site, desktop, application)["user"]["email"] == DAVE


def test_sign_up_by_code_leaves_the_phone_a_dead_link(desktop, phone, site, application, ask):
    mail = ask("sign-up", "Confirm your email address", email=DAVE, password=PASSWORD)
    phone.open(mail.link)
    phone.wait_for("Confirm your email address")
    type_in(desktop, mail.code)
    assert traded(site, desktop, application)["user"]["email"] == DAVE
    phone.click("Continue")
    phone.wait_for("It has been used, has expired, or was replaced")


@pytest.mark.parametrize("path", ["sign-in", "forgot-password"])
def test_link_on_a_phone_signs_in_there_alone(desktop, phone, here, alice, ask, database, path, has_script):
    mail = ask(path, "Reset your password" if path == "forgot-password" else "Sign in to", email=alice.email)
    phone.open(mail.link)
    phone.wait_for("not in this browser")
    assert "with Chrome on Linux from 127.0.0.1, not in this browser" in phone.text
    phone.click("Continue here")
    phone.wait_for("Save password" if path == "forgot-password" else "You are signed in here.")
    if not has_script:
        type_in(desktop, mail.code)
    desktop.wait_for(USED)
    assert desktop.url == f"{here}/{f'{path}/verify' if not has_script else 'waiting'}"
    if path == "forgot-password":
        fill(phone, password=NEW_PASSWORD)
        phone.click("Save password")
        phone.wait_for("Your password is saved.")
    assert database.count("authorization_codes") == 0
    desktop.without_script(False)
    desktop.open(f"{here}/account")
    desktop.wait_for("Your session has ended.")


@pytest.mark.parametrize("path", ["sign-in", "forgot-password"])
def test_code_goes_on_at_the_desktop_after_a_look_at_the_link(
    desktop, phone, site, application, alice, ask, path
):
    mail = ask(path, "Reset your password" if path == "forgot-password" else "Sign in to", email=alice.email)
    phone.open(mail.link)
    phone.wait_for("enter the code from this email there")
    type_in(desktop, mail.code)
    if path == "forgot-password":
        desktop.wait_for("Choose a new password")
        fill(desktop, password=NEW_PASSWORD)
        desktop.click("Save password")
    assert traded(site, desktop, application)["user"]["email"] == alice.email
    phone.click("Continue here")
    is_recovery = path == "forgot-password"
    phone.wait_for("It has expired." if is_recovery else "It has been used, has expired, or was replaced")


@pytest.mark.parametrize("by_code_first", [False, True])
def test_change_of_email_goes_on_at_the_desktop(desktop, phone, here, alice, post, by_code_first, has_script):
    desktop.open(f"{here}/sign-in")
    fill(desktop, email=alice.email, password=PASSWORD)
    desktop.click("Sign in")
    desktop.wait_for("Your account")
    desktop.open(f"{here}/account/email")
    fill(desktop, email=NEW)
    desktop.click("Send code")
    desktop.wait_for("Check your inbox")
    mail = post.read(NEW, "Confirm your new email address")
    phone.open(mail.link)
    phone.wait_for("Confirm your new email address")
    if by_code_first:
        type_in(desktop, mail.code)
        desktop.wait_for("Your email address is changed.")
        phone.click("Continue")
        phone.wait_for("It has been used, has expired, or was replaced")
        return
    phone.click("Continue")
    phone.wait_for("Return to the window where you changed it.")
    go_on(desktop, has_script)
    desktop.wait_for("Your email address is changed.")


def test_waiting_tab_notices_the_link_in_another_tab_of_its_browser(desktop, site, application, alice, ask):
    link = ask("sign-in", "Sign in to", email=alice.email).link
    desktop.wait(
        lambda: desktop.run(
            "performance.getEntriesByType('resource').some((each) => each.name.endsWith('/waiting/state'))"
        )
    )
    # What another tab sends, with the same cookies.
    desktop.run(
        f"""(async () => {{
          const page = await (await fetch({link!r})).text();
          const form = new DOMParser().parseFromString(page, "text/html").querySelector("main form");
          const body = new URLSearchParams(new FormData(form));
          await fetch("/verify", {{ method: "POST", body, redirect: "manual" }});
        }})()"""
    )
    desktop.wait_for(f"Continue as {alice.email}")
    desktop.click(f"Continue as {alice.email}")
    assert traded(site, desktop, application)["user"]["email"] == alice.email
