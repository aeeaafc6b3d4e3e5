"""Fixtures of the console in a browser."""

import pytest

from tests.support.browser import Browser, fill
from tests.support.console_ids import ids as ids
from tests.support.users import PASSWORD


@pytest.fixture(scope="module")
def host() -> str:
    """A name, which passkeys need."""
    return "localhost"


@pytest.fixture
def console(page, origin, carol) -> Browser:
    """The browser of Carol, an administrator, on the console."""
    page.resize(1280, 800)
    page.open(f"{origin}/console")
    fill(page, email=carol.email, password=PASSWORD)
    page.click("Sign in")
    page.wait_for("Overview")
    return page
