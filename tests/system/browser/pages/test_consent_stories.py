"""Consent in a real browser, without JavaScript: it applies form-action to the redirects after a form."""

import pytest

from tests.support.browser import Browser, fill
from tests.support.factors import set_up
from tests.support.openid import answer, authorize_path, insert_client
from tests.support.users import PASSWORD

pytest_plugins = ["tests.support.browser_fixtures"]


@pytest.fixture
def ask(page: Browser, here, application, database):
    """Open an authorization request of an application."""
    client_id = insert_client(database, application)
    page.without_script()

    def ask(**parameters: str) -> None:
        page.open(here + authorize_path(client_id, redirect_uri=application, **parameters))

    return ask


def sign_in(page: Browser, email: str) -> None:
    page.wait_for("Sign in to Acme")
    fill(page, email=email, password=PASSWORD)
    page.click("Sign in")


def code(page: Browser, application: str) -> str:
    """Wait until the browser is back at the application, and return the code."""
    page.wait(lambda: page.url.startswith(f"{application}?"))
    return answer(page.url, application)["code"]


def test_user_agrees_once_and_only_signs_in_later(page, site, alice, application, ask):
    ask()
    sign_in(page, alice.email)
    page.wait_for("Grafana wants to:")
    page.click("Allow")
    codes = {code(page, application)}
    ask()
    codes.add(code(page, application))
    page.forget()
    ask()
    sign_in(page, alice.email)
    codes.add(code(page, application))
    assert len(codes) == 3


def test_user_with_a_second_factor_completes_it_on_the_way(page, site, alice, application, ask):
    app, _ = set_up(alice.open_session())
    ask(prompt="consent")
    sign_in(page, alice.email)
    page.wait_for("One more step")
    fill(page, code=app.code())
    page.click("Continue")
    page.wait_for("Grafana wants to:")
    page.click("Cancel")
    page.wait(lambda: page.url.startswith(f"{application}?"))
    assert answer(page.url, application)["error"] == "access_denied"
