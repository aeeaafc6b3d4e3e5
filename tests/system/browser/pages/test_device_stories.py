"""Sign-ins that begin in one browser and go on in another, or in a new tab, with the application beside them.

The application signs users in on our pages, or is a client of the OpenID provider and not the service's site.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import pytest

from tests.support.applications import Application
from tests.support.browser import Browser, fill
from tests.support.inbox import Mail, Post
from tests.support.openid import make_client
from tests.support.users import ALICE

pytest_plugins = ["tests.support.browser_fixtures"]

NEW_PASSWORD = "Fresh-Horse-2"
# The texts of the buttons to press, among others on a page.
PRIMARY = """[...document.querySelectorAll("main .button, main button")].filter(
  (each) => ["", "button"].includes(each.className)
).map((each) => each.innerText)"""
# The subject of the mail, by the page that asks for it.
SUBJECTS = {"sign-in": "Sign in to", "forgot-password": "Reset your password"}


@pytest.fixture(scope="module")
def acme() -> Iterator[Application]:
    with Application("Acme").running() as acme:
        yield acme


@pytest.fixture(scope="module")
def grafana() -> Iterator[Application]:
    with Application("Grafana").running() as grafana:
        yield grafana


@pytest.fixture(scope="module")
def settings(mailing: dict[str, str], acme: Application) -> dict[str, str]:
    return mailing | {"AUTH_SITE_URL": acme.url, "AUTH_SITE_LOGIN_URL": f"{acme.url}/login"}


@dataclass
class Story:
    """A user who begins at a page of an application."""

    application: Application
    post: Post
    # The page that asks for a mail.
    page: str

    def ask(self, browser: Browser) -> Mail:
        """Come from the application, ask for a mail, and return it."""
        browser.open(f"{self.application.url}/boards/7")
        browser.wait_for("Sign in to Acme")
        fill(browser, email=ALICE)
        if self.page == "sign-in":
            browser.click("Send me a code instead")
        else:
            browser.click("Forgot password?")
            browser.wait_for("Send code")
            browser.click("Send code")
        return self.receive(browser)

    def receive(self, browser: Browser) -> Mail:
        browser.wait_for("Check your inbox")
        return self.post.read(ALICE, SUBJECTS[self.page])

    def choose_password(self, browser: Browser) -> None:
        if self.page == "forgot-password":
            browser.wait_for("Choose a new password")
            browser.wait(lambda: browser.run("!!document.querySelector('[name=password]')"))
            fill(browser, password=NEW_PASSWORD)
            browser.click("Save password")

    def enter(self, browser: Browser, code: str) -> None:
        fill(browser, code=code)
        browser.click("Continue")
        self.choose_password(browser)

    def sign_in(self, browser: Browser) -> None:
        browser.wait_for("Sign in to Acme")
        assert browser.run("document.querySelector('[name=email]').value") == ALICE
        fill(browser, password=NEW_PASSWORD)
        browser.click("Sign in")

    def arrive(self, browser: Browser, page: str, *, has_agreed: bool = False) -> None:
        """Wait until the application shows a page to the user."""
        if self.application.client and not has_agreed:
            browser.wait_for("Grafana wants to:")
            browser.click("Allow")
        browser.wait_for(f"{page} of {ALICE}")


@pytest.fixture
def story(request, acme, grafana, origin, database, post, alice) -> Story:
    page, by_openid = request.param
    acme.sign_in_at(origin, None)
    if by_openid:
        grafana.sign_in_at(origin, make_client(database, grafana.callback, uri=grafana.url))
    return Story(grafana if by_openid else acme, post, page)


@pytest.fixture
def desktop(page) -> Browser:
    page.resize(1280, 800)
    return page


@pytest.mark.parametrize(
    ("story", "has_script"),
    [
        (("sign-in", True), True),
        (("forgot-password", True), False),
        (("forgot-password", False), True),
    ],
    indirect=["story"],
)
def test_link_opened_on_a_phone_leads_both_devices_to_the_application(
    desktop, phone, origin, story, post, database, has_script
):
    desktop.without_script(not has_script)
    mail = story.ask(desktop)
    phone.open(mail.link)
    phone.wait_for(f"enter this code there:\n\n{mail.code[:3]} {mail.code[3:]}")
    phone.click("Continue here")
    story.choose_password(phone)
    # Acme asks for the user that has chosen a password, and is answered at once.
    if story.page != "forgot-password" or story.application.client:
        phone.wait_for("You’re signed in")
        assert phone.run(PRIMARY) == [f"Go to {story.application.name}"]
        assert phone.run("document.documentElement.scrollWidth") <= 375
        phone.click(f"Go to {story.application.name}")
    story.arrive(phone, "Home")
    if not has_script:
        desktop.run("document.querySelector('main details').open = true")
        desktop.click("I opened the link")
    desktop.wait_for("This link was used in another browser")
    assert "latchkey" not in desktop.cookies(origin)
    assert database.count("sessions", "opened_by IS NULL") == database.count("browser_sessions") == 1
    post.clear()
    onward = "Send a new code" if story.page == "sign-in" else "Sign in"
    assert desktop.run(PRIMARY) == [onward]
    desktop.click(onward)
    if story.page == "sign-in":
        story.enter(desktop, story.receive(desktop).code)
    else:
        story.sign_in(desktop)
    story.arrive(desktop, "Board 7", has_agreed=True)


@pytest.mark.parametrize(
    ("story", "has_script"),
    [(("sign-in", True), True), (("forgot-password", False), False)],
    indirect=["story"],
)
def test_phone_that_closed_the_tab_comes_back_and_ends_where_it_began(phone, story, database, has_script):
    phone.without_script(not has_script)
    mail, waiting_page = story.ask(phone), phone.url
    phone.close_tab()
    phone.be_on_a_phone()
    phone.without_script(not has_script)
    phone.open(waiting_page)
    phone.wait_for("Check your inbox")
    phone.reload()
    phone.wait_for("Check your inbox")
    phone.go(-1)
    phone.wait(lambda: phone.url == "about:blank")
    phone.go(1)
    phone.wait_for("Check your inbox")
    assert database.count("outbox") == 1
    story.enter(phone, mail.code)
    story.arrive(phone, "Board 7")
