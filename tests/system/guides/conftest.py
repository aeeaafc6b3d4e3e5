"""Fixtures of the guides' tests: a browser at no page of a service, and policies in a database."""

from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing
from typing import Any

import psycopg2
import pytest

from tests.support.browser import Browser
from tests.support.databases import as_role, run
from tests.support.guides import Block


@pytest.fixture
def page(tab: Browser) -> Iterator[Browser]:
    """A browser that speaks English, for services that the tests start."""
    tab.start_anew()
    yield tab
    tab.open("about:blank")


@pytest.fixture
def connect_as_api(new_database: Callable[..., str]) -> Iterator[Callable[..., Any]]:
    """Return a function that runs blocks in an empty database, and connects as the role `api` that they create."""
    with ExitStack() as stack:

        def connect(*blocks: Block) -> Any:
            url = new_database("\n".join(block.text for block in blocks))
            stack.callback(run, url, "DROP OWNED BY api; DROP ROLE api")
            return stack.enter_context(closing(psycopg2.connect(as_role(url, "api"))))

        yield connect
