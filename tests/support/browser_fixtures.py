"""Fixtures of the tests in a browser, which load this module as a plugin."""

from collections.abc import Iterator

import pytest

from tests.support import browser
from tests.support.browser import Browser, BrowserError


@pytest.fixture(scope="session")
def tab(tmp_path_factory) -> Iterator[Browser]:
    """A tab of Chromium. Tests are skipped without it."""
    program = browser.find()
    if program is None:
        pytest.skip("NOT TESTED: pages in a browser. It needs Chromium: apt-get install chromium")
    opened = Browser(program, tmp_path_factory.mktemp("chromium"))
    try:
        opened.__enter__()
    except BrowserError as error:
        pytest.skip(f"NOT TESTED: pages in a browser. {program} does not start: {error}")
    yield opened
    opened.__exit__()
