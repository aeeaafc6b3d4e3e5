"""An invitation ends signed in at the application, whose users sign in by OpenID Connect."""

from collections.abc import Iterator

import pytest

from tests.support.applications import Application
from tests.support.browser import fill
from tests.support.openid import make_client
from tests.support.users import DAVE

pytest_plugins = ["tests.support.browser_fixtures"]


@pytest.fixture(scope="module")
def acme() -> Iterator[Application]:
    with Application("Acme").running() as acme:
        yield acme


@pytest.fixture(scope="module")
def settings(mailing: dict[str, str], acme: Application) -> dict[str, str]:
    return mailing | {"AUTH_SITE_URL": acme.url, "AUTH_SITE_LOGIN_URL": f"{acme.url}/login"}


def test_invited_user_ends_at_the_application(page, origin, site, post, service_role, acme, database):
    acme.sign_in_at(origin, make_client(database, acme.callback))
    page.without_script()
    site.post("/admin/invite", json={"email": DAVE}, headers=service_role)
    page.open(post.read(DAVE, "You’re invited to join Acme").link)
    page.click("Continue")
    page.wait_for("Welcome to Acme")
    page.wait(lambda: page.run("!!document.querySelector('[name=password]')"))
    fill(page, password="Fresh-Horse-2")
    page.click("Save password")
    page.wait_for("wants to:")
    page.click("Allow")
    page.wait_for(f"Home of {DAVE}")
