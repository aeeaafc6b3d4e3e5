"""The button that sends another code, in a browser, where requests are limited."""

import pytest

from tests.support.browser import fill
from tests.support.users import DAVE

pytest_plugins = ["tests.support.browser_fixtures"]


@pytest.fixture(scope="module")
def settings() -> dict[str, str]:
    return {"AUTH_RATE_LIMITS_ENABLED": "true"}


def test_button_for_another_code_counts_down_even_after_a_reload(page, origin):
    page.open(f"{origin}/forgot-password")
    fill(page, email=DAVE)
    page.click("Send code")
    page.wait_for("Send a new code (0:")
    page.reload()
    page.wait_for("Send a new code (0:")
    assert page.run("document.querySelector('[data-again-in]').disabled")
    page.run("(now => { Date.now = () => now() + 60000 })(Date.now)")
    page.wait(lambda: "(0:" not in page.text)
    # The browser's clock decides nothing.
    page.click("Send a new code")
    page.wait_for("We can’t send a new code yet.")
