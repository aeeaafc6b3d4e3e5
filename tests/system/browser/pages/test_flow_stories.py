"""Flows that begin on our pages end signed in at the application, whose users sign in on them or by OpenID Connect."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import pytest

from tests.support.applications import Application
from tests.support.browser import Browser, fill
from tests.support.inbox import Post
from tests.support.openid import make_client
from tests.support.users import ALICE, DAVE, PASSWORD

pytest_plugins = ["tests.support.browser_fixtures"]

NEW_PASSWORD = "Fresh-Horse-2"


@pytest.fixture(scope="module")
def acme() -> Iterator[Application]:
    with Application("Acme").running() as acme:
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
    flow.page.click("Continue without a password")
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
    page.wait_for(f"Home of {address}")


def test_user_who_opens_the_application_later_is_asked(page, here, site, post, service_role, acme):
    acme.signs_in_at(here, None)
    invitation(Flow(page, here, site, post, service_role))
    page.wait_for(f"Home of {DAVE}")
    page.open(f"{acme.url}/login")
    page.wait_for(f"Continue as {DAVE}")
    page.click(f"Continue as {DAVE}")
    page.wait_for(f"Home of {DAVE}")
