"""Flows that begin on our pages end signed in at the application, whose users sign in on them or by OpenID Connect."""

import html
import secrets
from base64 import urlsafe_b64encode
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from hashlib import sha256
from typing import Any
from urllib.parse import parse_qs, urlencode, urlsplit

import pytest
import requests

from tests.support.browser import Browser, fill
from tests.support.inbox import Post
from tests.support.local_server import Handler, LocalServer
from tests.support.openid import Client, make_client
from tests.support.users import ALICE, DAVE, PASSWORD

pytestmark = pytest.mark.browser
pytest_plugins = ["tests.support.browser_fixtures"]

NEW_PASSWORD = "Fresh-Horse-2"


class Application(LocalServer):
    """An application with a page where its sign-in begins, and one where it ends, which names the user."""

    def __init__(self) -> None:
        application = self

        class Pages(Handler):
            def do_GET(self) -> None:
                path, _, query = self.path.partition("?")
                sent = {name: values[0] for name, values in parse_qs(query).items()}
                if path == "/login":
                    return self.reply(302, {"Location": application.leave()})
                said = f"Signed in as {application.trade(sent['code'])}" if "code" in sent else "Sign in"
                body = f"<!doctype html><link rel=icon href=data:,><title>Acme</title>{html.escape(said)}"
                return self.reply(200, {"Content-Type": "text/html"}, body.encode())

        super().__init__(Pages)
        self.here = ""
        self.client: Client | None = None

    def signs_in_at(self, here: str, client: Client | None) -> None:
        """Sign users in at the service, as a client of its provider or on its pages."""
        self.here, self.client = here, client
        self._verifier = secrets.token_urlsafe(32)

    @property
    def callback(self) -> str:
        return f"{self.url}/callback"

    def leave(self) -> str:
        challenge = urlsafe_b64encode(sha256(self._verifier.encode()).digest()).decode().rstrip("=")
        query = {"code_challenge": challenge}
        if not self.client:
            return f"{self.here}/sign-in?{urlencode(query | {'redirect_to': self.callback})}"
        query |= {"client_id": self.client.id, "redirect_uri": self.callback, "response_type": "code"}
        query |= {"scope": "openid email", "code_challenge_method": "S256", "state": "x"}
        return f"{self.here}/oauth/authorize?{urlencode(query)}"

    def trade(self, code: str) -> str:
        """Return the email of the user whose code it is."""
        proof = {"code_verifier": self._verifier}
        if not self.client:
            body = {"auth_code": code} | proof
            return _read(requests.post(f"{self.here}/token?grant_type=pkce", json=body, timeout=10))["user"][
                "email"
            ]
        form = {"grant_type": "authorization_code", "code": code, "redirect_uri": self.callback} | proof
        url, headers = f"{self.here}/oauth/token", self.client.basic
        tokens = _read(requests.post(url, data=form, headers=headers, timeout=10))
        bearer = {"Authorization": f"Bearer {tokens['access_token']}"}
        return _read(requests.get(f"{self.here}/oauth/userinfo", headers=bearer, timeout=10))["email"]


def _read(response: requests.Response) -> Any:
    assert response.ok, response.text
    return response.json()


@pytest.fixture(scope="module")
def acme() -> Iterator[Application]:
    with Application() as acme:
        yield acme


@pytest.fixture(scope="module")
def settings(mailing: dict[str, str], acme: Application) -> dict[str, str]:
    return mailing | {"AUTH_SITE_URL": acme.url, "AUTH_SITE_LOGIN_URL": f"{acme.url}/login"}


@pytest.fixture(params=["on our pages", "by OpenID Connect"])
def application(request, acme, here, database) -> Application:
    by_openid = request.param == "by OpenID Connect"
    acme.signs_in_at(here, make_client(database, acme.callback) if by_openid else None)
    return acme


@dataclass
class Flow:
    page: Browser
    here: str
    site: Any
    post: Post
    service_role: dict[str, str]

    def open_link(self, address: str, subject: str) -> None:
        self.page.open(self.post.read(address, subject).link)
        self.page.wait_for("Continue")
        self.page.click("Continue")

    def choose(self, heading: str) -> None:
        self.page.wait(
            lambda: heading in self.page.text and self.page.run("!!document.querySelector('[name=password]')")
        )
        fill(self.page, password=NEW_PASSWORD)
        self.page.click("Save password")


def invitation(flow: Flow) -> str:
    flow.site.post("/admin/invite", json={"email": DAVE}, headers=flow.service_role)
    flow.open_link(DAVE, "You’ve been invited to Acme")
    flow.choose("Welcome to Acme")
    return DAVE


def invitation_without_a_password(flow: Flow) -> str:
    flow.site.post("/admin/invite", json={"email": DAVE}, headers=flow.service_role)
    flow.open_link(DAVE, "You’ve been invited to Acme")
    flow.page.wait_for("Welcome to Acme")
    flow.page.click("Not now")
    return DAVE


def recovery(flow: Flow) -> str:
    flow.page.open(f"{flow.here}/forgot-password")
    fill(flow.page, email=ALICE)
    flow.page.click("Send code")
    flow.page.wait_for("Check your inbox")
    flow.open_link(ALICE, "Reset your password")
    flow.choose("Choose a new password")
    return ALICE


def sign_up(flow: Flow) -> str:
    flow.page.open(f"{flow.here}/sign-up")
    fill(flow.page, email=DAVE, password=PASSWORD)
    flow.page.click("Create account")
    flow.page.wait_for("Check your inbox")
    flow.open_link(DAVE, "Confirm your email")
    return DAVE


@pytest.mark.parametrize("has_script", [True, False], ids=["with script", "without script"])
@pytest.mark.parametrize("walk", [invitation, invitation_without_a_password, recovery, sign_up])
def test_user_ends_signed_in_at_the_application(
    page, here, site, post, alice, service_role, application, walk: Callable[[Flow], str], has_script
):
    page.without_script(not has_script)
    address = walk(Flow(page, here, site, post, service_role))
    if application.client:
        page.wait_for("wants to:")
        page.click("Allow")
    page.wait_for(f"Signed in as {address}")
    assert urlsplit(page.url)._replace(query="").geturl() == application.callback


def test_user_who_opens_the_application_later_is_asked(page, here, site, post, service_role, acme):
    acme.signs_in_at(here, None)
    invitation(Flow(page, here, site, post, service_role))
    page.wait_for(f"Signed in as {DAVE}")
    page.open(f"{acme.url}/login")
    page.wait_for(f"Continue as {DAVE}")
    page.click(f"Continue as {DAVE}")
    page.wait_for(f"Signed in as {DAVE}")
