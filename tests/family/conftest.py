"""The browser of applications by other hands."""

from collections.abc import Iterator

import pytest

from tests.support.browser import Browser


@pytest.fixture
def page(tab, here) -> Iterator[Browser]:
    """A browser that speaks English. Pages of others may lack icons, or name pictures on other hosts."""
    tab.forget()
    tab.speak("en")
    yield tab
    # Its requests would reach the tables of the next test.
    tab.open("about:blank")
    tab.complaints()
