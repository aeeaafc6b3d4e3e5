"""Ways from our pages to an application whose callback redirects to another origin, as brokers' do.

Chromium applies form-action of a page to all redirects that follow its form. Each way is walked with JavaScript
and without.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any
from urllib.parse import parse_qsl, urlencode, urlsplit

import pytest

from tests.support import passkeys
from tests.support.browser import Browser, fill
from tests.support.factors import set_up
from tests.support.fake_provider import FakeProvider
from tests.support.links import Outbox, path
from tests.support.local_server import Handler, LocalServer
from tests.support.openid import authorize_path, grant, insert_client
from tests.support.tables import Rows
from tests.support.users import ALICE, DAVE, PASSWORD, Person

pytest_plugins = ["tests.support.browser_fixtures"]


class Broker(LocalServer):
    """An application whose callback redirects to another origin, with what it was given."""

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
    here: str
    broker: Broker
    alice: Person
    site: Any
    database: Rows
    outbox: Outbox
    service_role: dict[str, str]

    def press(self, button: str, sentence: str = "", **fields: str) -> None:
        """Fill in the fields of a page with a sentence, and press a button."""
        self.page.wait(lambda: sentence in self.page.text and button in self.page.text)
        fill(self.page, **fields)
        self.page.click(button)

    def begin(self, name: str = "sign-in", **query: str) -> None:
        """Open one of our pages for the application."""
        self.page.open(f"{self.here}/{name}?{urlencode({'redirect_to': self.broker.callback, **query})}")

    def enter_code(self, address: str) -> None:
        self.page.wait_for("Check your inbox")
        self.press("Continue", code=self.outbox.last(address).code)

    def sign_in(self) -> None:
        self.press("Sign in", email=ALICE, password=PASSWORD)

    def be_signed_in(self) -> None:
        self.page.open(f"{self.here}/sign-in")
        self.sign_in()
        self.page.wait_for("Your account")

    def authorize(self, **parameters: str) -> None:
        self.client_id = insert_client(self.database, self.broker.callback)
        self.page.open(
            self.here + authorize_path(self.client_id, redirect_uri=self.broker.callback, **parameters)
        )

    def authorize_again(self, **parameters: str) -> None:
        """Begin a request of an application that Alice has allowed."""
        self.authorize(**parameters)
        grant(self.database, self.alice.id, self.client_id)

    def open_link(self, type: str, to: str = ALICE) -> None:
        sent = self.outbox.last(to)
        self.page.open(self.here + path(type, sent.token))
        self.page.wait_for("Continue")

    def link(self) -> None:
        """Open the page on which Alice links an account at Google."""
        session = self.alice.sign_in(client=self.site)
        self.page.open(session.get("/user/identities/authorize?provider=google").json["url"])


def password(way: Way) -> None:
    way.begin()
    way.sign_in()


def code(way: Way) -> None:
    way.begin()
    way.press("Send me a code instead", email=ALICE)
    way.enter_code(ALICE)


def sign_up(way: Way) -> None:
    way.begin("sign-up")
    way.press("Create account", email=DAVE, password=PASSWORD)
    way.enter_code(DAVE)


def account(way: Way) -> None:
    way.be_signed_in()
    way.begin()
    way.press(f"Continue as {ALICE}")


def second_step(way: Way) -> None:
    app, _ = set_up(way.alice.open_session())
    password(way)
    way.press("Continue", "One more step", code=app.code())


def skipped_step(way: Way) -> None:
    passkeys.register(way.alice.open_session())
    password(way)
    way.press("Not now", "One more step")


def new_password(way: Way) -> None:
    way.begin("forgot-password")
    way.press("Send code", email=ALICE)
    way.enter_code(ALICE)
    way.press("Save password", "Choose a new password", password="Fresh-Horse-2")


def new_password_for_the_site(way: Way) -> None:
    way.page.open(f"{way.here}/forgot-password")
    way.press("Send code", email=ALICE)
    way.enter_code(ALICE)
    way.press("Save password", "Choose a new password", password="Fresh-Horse-2")


def sign_up_for_the_site(way: Way) -> None:
    way.page.open(f"{way.here}/sign-up")
    way.press("Create account", email=DAVE, password=PASSWORD)
    way.enter_code(DAVE)


def invitation(way: Way) -> None:
    way.site.post("/admin/invite", json={"email": DAVE}, headers=way.service_role)
    way.open_link("invite", DAVE)
    way.press("Continue")
    way.press("Save password", "Welcome to Acme", password="Fresh-Horse-2")


def invitation_without_a_password(way: Way) -> None:
    way.site.post("/admin/invite", json={"email": DAVE}, headers=way.service_role)
    way.open_link("invite", DAVE)
    way.press("Continue")
    way.press("Continue without a password", "Welcome to Acme")


def provider(way: Way) -> None:
    way.begin()
    way.press("Continue with Google")


def sign_out(way: Way) -> None:
    way.be_signed_in()
    way.begin("sign-out")
    way.press("Sign out")


def sign_out_of_an_application(way: Way) -> None:
    way.be_signed_in()
    client = insert_client(way.database, post_logout_redirect_uris=[way.broker.callback])
    query = urlencode({"client_id": client, "post_logout_redirect_uri": way.broker.callback})
    way.page.open(f"{way.here}/oauth/logout?{query}")
    way.press("Sign out")


def consent(way: Way) -> None:
    way.authorize()
    way.sign_in()
    way.press("Allow")


def refusal(way: Way) -> None:
    way.authorize()
    way.sign_in()
    way.press("Cancel")


def consent_given_earlier(way: Way) -> None:
    way.authorize_again()
    way.sign_in()


def refusal_of_a_role(way: Way) -> None:
    way.authorize()
    way.database.run("UPDATE oauth_clients SET allowed_roles = '{editor}'")
    way.sign_in()
    way.press("Go back to Grafana", "You can’t use Grafana")


def cancelled_confirmation(way: Way) -> None:
    way.be_signed_in()
    way.authorize_again(prompt="login")
    way.press("Cancel", "Grafana asks you to sign in again.")


def confirmation(way: Way) -> None:
    way.be_signed_in()
    way.authorize_again(prompt="login")
    way.press("Continue", "Confirm it’s you", current_password=PASSWORD)


def link(way: Way) -> None:
    way.site.post("/magiclink", json={"email": ALICE})
    way.open_link("magiclink")
    way.press("Continue")


def dead_link(way: Way) -> None:
    way.site.post("/magiclink", json={"email": ALICE})
    way.open_link("magiclink")
    way.database.run("UPDATE one_time_tokens SET expires_at = now()")
    way.press("Continue")


def changed_address(way: Way) -> None:
    way.alice.sign_in(client=way.site).put("/user", json={"email": "new@example.com"})
    way.open_link("email_change", "new@example.com")
    way.press("Continue")


def linking(way: Way) -> None:
    way.link()
    way.press("Continue")


def refused_linking(way: Way) -> None:
    way.link()
    way.database.run(
        "INSERT INTO identities (user_id, provider, subject, identity_data)"
        " SELECT id, 'google', 'alice-at-google', '{}' FROM users"
    )
    way.press("Continue")


@pytest.mark.parametrize("has_script", [True, False], ids=["with script", "without script"])
@pytest.mark.parametrize(
    ("walk", "given"),
    [
        *((walk, "access_token") for walk in (password, code, sign_up, account, second_step, skipped_step)),
        *((walk, "access_token") for walk in (new_password, provider, link)),
        *((walk, "code") for walk in (consent, consent_given_earlier, confirmation)),
        *((walk, "error") for walk in (refusal, refusal_of_a_role, cancelled_confirmation)),
        *((walk, "error") for walk in (dead_link, refused_linking)),
        *((walk, "message") for walk in (changed_address, linking)),
        *((walk, None) for walk in (new_password_for_the_site, sign_up_for_the_site)),
        *((walk, None) for walk in (invitation, invitation_without_a_password)),
        *((walk, None) for walk in (sign_out, sign_out_of_an_application)),
    ],
)
def test_browser_gets_through_an_application_that_redirects_on(
    page,
    here,
    broker,
    alice,
    site,
    database,
    outbox,
    service_role,
    walk: Callable[[Way], None],
    given: str | None,
    has_script,
):
    page.without_script(not has_script)
    walk(Way(page, here, broker, alice, site, database, outbox, service_role))
    page.wait(lambda: page.url.startswith(broker.end))
    parts = urlsplit(page.url)
    assert given is None or given in dict(parse_qsl(f"{parts.query}&{parts.fragment}"))


def test_back_leads_to_the_form_and_sends_it_no_second_time(
    page, here, broker, alice, site, database, outbox, service_role
):
    way = Way(page, here, broker, alice, site, database, outbox, service_role)
    account(way)
    page.wait(lambda: page.url.startswith(broker.end))
    page.run("history.back()")
    page.wait_for(f"Continue as {ALICE}")
    assert database.count("sessions", "method = 'password'") == 2
