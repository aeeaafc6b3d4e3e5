"""The page for the code of a device in a real browser without JavaScript."""

import pytest

from tests.support.browser import Browser, fill
from tests.support.devices import Device, begin, make_television
from tests.support.factors import set_up
from tests.support.users import PASSWORD

pytest_plugins = ["tests.support.browser_fixtures"]

CONSENT = "Television wants to:"


@pytest.fixture
def device(site, database) -> Device:
    return begin(site, make_television(database))


def sign_in(page: Browser, email: str) -> None:
    page.wait_for("Sign in to Acme")
    fill(page, email=email, password=PASSWORD)
    page.click("Sign in")


def test_user_without_javascript_passes_the_second_step_on_the_way_to_consent(
    page, site, origin, alice, device
):
    app, _ = set_up(alice.open_session())
    page.without_script()
    page.open(device.codes["verification_uri_complete"])
    sign_in(page, alice.email)
    page.wait_for("One more step")
    fill(page, code=app.code())
    page.click("Continue")
    page.wait_for("Enter the code shown on your device.")
    page.click("Continue")
    page.wait_for(CONSENT)
    page.click("Cancel")
    page.wait_for("The device isn’t connected")
    assert device.poll().json["error"] == "access_denied"
