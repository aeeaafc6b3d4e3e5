"""Each page checked by axe-core in a real browser, in both themes and at 320 px.

axe-core is installed by `npm ci` in tests/clients.
"""

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.pages.test_stories import fill, signed_in
from tests.support.browser import Browser
from tests.support.cast import PASSWORD
from tests.support.factors import App
from tests.support.links import path

pytestmark = pytest.mark.browser
pytest_plugins = ["tests.support.browser_fixtures"]

AXE = Path(__file__).parents[1] / "clients" / "node_modules" / "axe-core" / "axe.min.js"


@pytest.fixture(scope="module")
def host() -> str:
    return "localhost"


@pytest.fixture
def axe() -> str:
    if not AXE.exists():
        pytest.skip("NOT TESTED: accessibility. It needs axe-core: npm ci in tests/clients")
    return AXE.read_text()


def problems(page: Browser, axe: str) -> list[str]:
    """Return what axe-core finds on the page."""
    page.run(axe)
    return page.run(
        "axe.run().then((found) => found.violations.map((each) =>"
        " `${each.id}: ${each.nodes.map((node) => node.html).join(' ')}`))"
    )


@pytest.fixture(params=["light", "dark"])
def check(request, page, here, axe) -> Callable[..., None]:
    """Check a page, or the current one."""
    page.resize(320, 640, dark=request.param == "dark")

    def checked(where: str | None = None) -> None:
        if where:
            page.open(here + where)
        assert problems(page, axe) == [], where or page.text
        assert page.run("document.documentElement.scrollWidth <= innerWidth"), where or page.text

    return checked


def test_pages_are_accessible_and_fit_the_screen(page, site, here, alice, outbox, check):
    site.post("/signup", json={"email": "dave@example.com", "password": PASSWORD})
    for where in ("/", "/sign-in", "/sign-up", "/forgot-password", "/nowhere"):
        check(where)
    check(path("signup", outbox.last("dave@example.com").token))
    page.open(f"{here}/sign-in")
    fill(page, email="nobody@example.com", password="Wrong-Horse-1")
    page.click("Sign in")
    page.wait_for("match")
    check()
    signed_in(page, here, alice)
    for where in (
        *("/account?done=name", "/account/name", "/account/email", "/account/phone", "/account/delete"),
        *("/account/confirm", "/account/two-step", "/new-password", f"/sign-in?redirect_to={here}/app"),
    ):
        check(where)


def test_pages_of_factors_are_accessible_and_fit_the_screen(page, here, alice, check, authenticator):
    signed_in(page, here, alice)
    page.click("Set up Two-step verification")
    page.wait_for("Signing in then also takes")
    page.click("Set it up")
    page.wait_for("Connect your app")
    check()
    app = App("", page.run("document.querySelector('main code').innerText.replace(/\\s/g, '')"))
    fill(page, code=app.wrong_code())
    page.click("Switch on")
    page.wait_for("That code is wrong.")
    check()
    fill(page, code=app.code(-1))
    page.click("Switch on")
    page.wait_for("Keep these recovery codes")
    check()
    code = page.run("document.querySelector('main li').innerText")
    check("/account")
    page.click("Add Passkey")
    page.wait_for("Your device asks")
    check()
    page.click("Create a passkey")
    page.wait_for("The passkey is added.")
    page.touch(authenticator, agrees=False)
    page.forget()
    page.open(f"{here}/sign-in")
    page.run("document.querySelector('form[data-challenge]').dataset.challenge = 'nowhere'")
    page.click("Sign in with a passkey")
    page.wait_for("Use the passkey on your device")
    check()
    page.open(f"{here}/sign-in")
    fill(page, email=alice.email, password=PASSWORD)
    page.click("Sign in")
    page.wait_for("One more step")
    check()
    page.run("document.querySelector('main summary').click()")
    check()
    fill(page, recovery_code=code)
    page.run("document.querySelector('[name=recovery_code]').form.requestSubmit()")
    page.wait_for("Your account")
