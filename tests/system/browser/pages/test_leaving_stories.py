"""Ways from our pages to an application whose callback redirects to another origin, as brokers' do.

Chromium applies form-action of a page to all redirects that follow its form, and so does the simulated browser of
tests/support/user_agent.py, which walks the others.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any
from urllib.parse import parse_qsl, urlencode, urlsplit

import httpx
import pytest

from tests.support.browser import Browser, fill
from tests.support.fake_provider import FakeProvider
from tests.support.links import Outbox, path
from tests.support.local_server import Handler, LocalServer
from tests.support.openid import authorize_path, insert_client
from tests.support.tables import Rows
from tests.support.users import ALICE, PASSWORD, Person

pytest_plugins = ["tests.support.browser_fixtures"]


class Broker(LocalServer):
    """An application whose callback redirects to another origin, with the same query."""

    def __init__(self) -> None:
        broker = self

        class Callback(Handler):
            def do_GET(self) -> None:
                path, _, query = self.path.partition("?")
                if path == "/callback":
                    self.reply(302, {"Location": f"{broker.end}?{query}"})
                else:
                    self.reply(200, {"Content-Type": "text/html"}, b"<link rel=icon href=data:,>Welcome")

        super().__init__(Callback)
        self.callback = f"{self.url}/callback"
        self.end = f"{self.url.replace('127.0.0.1', 'localhost')}/end"


@pytest.fixture(scope="module")
def broker() -> Iterator[Broker]:
    with Broker() as broker:
        yield broker


@pytest.fixture(scope="module")
def google() -> Iterator[FakeProvider]:
    with FakeProvider("google") as google:
        google.person = {"sub": "alice-at-google", "email": ALICE, "email_verified": True}
        yield google


@pytest.fixture(scope="module")
def settings(broker: Broker, google: FakeProvider) -> dict[str, str]:
    return {
        "AUTH_SITE_URL": broker.callback,
        **google.settings("google"),
    }


@dataclass
class Way:
    """A browser at the service, the broker, and Alice, a user."""

    page: Browser
    origin: str
    broker: Broker
    alice: Person
    site: Any
    database: Rows
    outbox: Outbox

    def press(self, button: str, sentence: str = "", **fields: str) -> None:
        """Fill in the fields of a page with a sentence, and press a button."""
        self.page.wait(lambda: sentence in self.page.text and button in self.page.text)
        fill(self.page, **fields)
        self.page.click(button)

    def begin(self, name: str = "sign-in") -> None:
        """Open one of our pages for the application."""
        self.page.open(f"{self.origin}/{name}?{urlencode({'redirect_to': self.broker.callback})}")

    def sign_in(self) -> None:
        self.press("Sign in", email=ALICE, password=PASSWORD)

    def be_signed_in(self) -> None:
        self.page.open(f"{self.origin}/sign-in")
        self.sign_in()
        self.page.wait_for("Your account")


@pytest.fixture
def way(page, origin, broker, alice, site, database, outbox) -> Way:
    return Way(page, origin, broker, alice, site, database, outbox)


def password(way: Way) -> None:
    way.begin()
    way.sign_in()


def provider(way: Way) -> None:
    way.begin()
    way.press("Continue with Google")


def sign_out(way: Way) -> None:
    way.be_signed_in()
    way.begin("sign-out")
    way.press("Sign out")


def consent(way: Way) -> None:
    client_id = insert_client(way.database, way.broker.callback)
    way.page.open(way.origin + authorize_path(client_id, redirect_uri=way.broker.callback))
    way.sign_in()
    way.press("Allow")


def test_page_of_consent_says_that_another_tab_gave_it_when_the_user_comes_back(way):
    client_id = insert_client(way.database, way.broker.callback)
    way.page.open(way.origin + authorize_path(client_id, redirect_uri=way.broker.callback))
    way.sign_in()
    way.page.wait_for("Allow")
    # Send the form as a second tab does, whose answer this tab does not see.
    form = way.page.run("Object.fromEntries(new FormData(document.querySelector('[data-once]')))")
    url, cookies = f"{way.origin}/oauth/consent", {"Cookie": way.page.cookie_header(way.origin)}
    answer = httpx.post(url, data=form | {"action": "approve"}, headers=cookies, trust_env=False)
    assert answer.headers["Location"].startswith(f"{way.broker.callback}?code=")
    way.page.run("document.dispatchEvent(new Event('visibilitychange')) && 0")
    way.page.wait(lambda: "Allow" not in way.page.text and "signed in" in way.page.text)


def link(way: Way) -> None:
    way.site.post("/magiclink", json={"email": ALICE})
    way.page.open(way.origin + path("magiclink", way.outbox.last(ALICE).token))
    way.press("Continue")


@pytest.mark.parametrize(
    ("walk", "member", "has_script"),
    [
        (password, "access_token", False),
        (provider, "access_token", False),
        (link, "access_token", True),
        (consent, "code", True),
        (consent, "code", False),
        (sign_out, None, False),
    ],
)
def test_browser_gets_through_an_application_that_redirects_on(
    way, broker, walk: Callable[[Way], None], member: str | None, has_script
):
    way.page.without_script(not has_script)
    walk(way)
    way.page.wait(lambda: way.page.url.startswith(broker.end))
    parts = urlsplit(way.page.url)
    assert member is None or member in dict(parse_qsl(f"{parts.query}&{parts.fragment}"))


def test_back_leads_to_the_form_and_sends_it_no_second_time(way, broker, database):
    way.be_signed_in()
    way.begin()
    way.press(f"Continue as {ALICE}")
    way.page.wait(lambda: way.page.url.startswith(broker.end))
    way.page.go(-1)
    way.page.wait_for(f"Continue as {ALICE}")
    assert database.count("sessions", "method = 'password'") == 2
