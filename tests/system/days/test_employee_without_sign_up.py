"""An employee's day at a service where new accounts are closed: the company's sign-in lets her in."""

import pytest

from tests.system.days.test_employee import arrive, by_code, open_application

pytest_plugins = ["tests.support.browser_fixtures"]

ZOE = "zoe@acme.example"


@pytest.fixture(scope="module")
def settings(settings):
    return settings | {"AUTH_DISABLE_SIGNUP": "true"}


def test_zoe_without_an_account_is_a_member_in_the_application(page, nimbus, company, connected, database):
    company.hire(ZOE)
    open_application(page, nimbus)
    assert "Create an account" not in page.text
    by_code(page, company, ZOE)
    company.sign_in(page, ZOE)
    arrive(page, nimbus, connected["organization"])
    assert database.all("SELECT email FROM users") == [(ZOE,)]
