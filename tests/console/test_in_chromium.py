"""All pages of the console in Chromium, with axe-core."""

import pytest

from tests.console.test_console_routes import Console
from tests.pages.test_accessibility import AXE, SCREENS, problems
from tests.pages.test_stories import signed_in_with_new_passkey

pytestmark = pytest.mark.browser
pytest_plugins = ["tests.support.browser_fixtures"]


@pytest.fixture
def operator(page, here, carol, authenticator, database) -> None:
    """Carol's passkey, with which she is signed in."""
    given = "UPDATE sessions SET code_given_at = now()"
    signed_in_with_new_passkey(page, here, carol, prepare=lambda: database.run(given))


def test_pages_and_confirmations_are_accessible_and_fit_the_screen(page, here, operator, app, ids, database):
    if not AXE.exists():
        pytest.skip("NOT TESTED: accessibility. It needs axe-core: npm ci in tests/clients")
    axe, console = AXE.read_text(), Console(app, ids, database)
    for path in (*console.pages, *console.forms):
        page.open(here + path)
        page.run(axe)
        for width, height, dark in SCREENS:
            page.resize(width, height, dark=dark)
            assert problems(page) == [], (path, width)
            assert page.run("document.documentElement.scrollWidth <= innerWidth"), (path, width)
