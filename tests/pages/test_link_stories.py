"""Invitation, recovery and undo in a browser, at a service that has an application: from the mail to there."""

from collections.abc import Iterator

import pytest

from tests.support.browser import Browser, fill
from tests.support.cast import PASSWORD, sign_in
from tests.support.factors import set_up
from tests.support.http_target import HttpTarget

pytestmark = pytest.mark.browser
pytest_plugins = ["tests.support.browser_fixtures"]

DAVE, NEW = "dave@example.com", "Fresh-Horse-2"


@pytest.fixture(scope="module")
def application() -> Iterator[HttpTarget]:
    """A home page that knows nothing of tokens."""
    with HttpTarget() as target:
        target.headers = {"Content-Type": "text/html"}
        target.body = b"<!doctype html><link rel=icon href=data:,><title>Acme</title>Welcome to Acme"
        yield target


@pytest.fixture(scope="module")
def settings(mailing: dict[str, str], application: HttpTarget) -> dict[str, str]:
    return mailing | {"AUTH_SITE_URL": f"{application.url}/start"}


@pytest.fixture
def arrived(page: Browser, application: HttpTarget):
    """Wait for the application, which must be opened once, without tokens."""
    application.requests.clear()

    def arrived() -> None:
        page.wait_for("Welcome to Acme")
        assert page.url == f"{application.url}/start"
        assert [request.path for request in application.requests] == ["/start"]

    return arrived


def choose(page: Browser, password: str) -> None:
    page.wait_for("Choose a new password")
    page.wait(lambda: page.run("!!document.querySelector('[name=password]')"))
    fill(page, password=password)
    page.click("Save password")


@pytest.mark.parametrize("has_script", [True, False], ids=["script", "no script"])
def test_invited_user_chooses_a_password_and_signs_in_to_the_application(
    page, site, here, service_role, post, arrived, application, has_script
):
    site.post("/admin/invite", json={"email": DAVE}, headers=service_role)
    page.without_script(not has_script)
    page.open(post.read(DAVE, "invited").link)
    page.click("Continue")
    choose(page, "Ab-1")
    page.wait_for("too short")
    choose(page, NEW)
    arrived()
    assert sign_in(site, DAVE, NEW).status_code == 200
    page.open(f"{here}/sign-in?redirect_to={application.url}/callback")
    page.wait_for(f"Continue as {DAVE}")


def test_administrator_sends_a_recovery_to_a_user_with_an_app(
    page, site, here, service_role, alice, post, arrived, database
):
    app, _ = set_up(alice.sign_in(client=site))
    site.post("/recover", json={"email": alice.email})
    page.open(post.read(alice.email, "Reset your password").link)
    page.click("Continue")
    page.wait_for("One more step")
    fill(page, code=app.code())
    page.click("Continue")
    choose(page, NEW)
    arrived()
    assert sign_in(site, alice.email, NEW).status_code == 200


def test_victim_undoes_a_change_and_chooses_a_new_password(page, site, alice, post, arrived):
    thief = alice.sign_in(client=site)
    thief.put("/user", json={"email": "mallory@evil.example"})
    code = post.read("mallory@evil.example", "Confirm your new email").code
    body = {"type": "email_change", "email": "mallory@evil.example", "token": code}
    assert site.post("/verify", json=body).status_code == 200
    page.open(post.read(alice.email, "Your email address was changed").link)
    page.click("Continue")
    page.wait_for("The change has been undone")
    page.click("Choose a new password")
    page.wait_for("Check your inbox")
    fill(page, code=post.read(alice.email, "Reset your password").code)
    page.click("Continue")
    choose(page, NEW)
    arrived()
    assert sign_in(site, alice.email, NEW).status_code == 200
    assert sign_in(site, alice.email, PASSWORD).status_code == 401
