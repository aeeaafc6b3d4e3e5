"""Tables of random rows."""

from collections.abc import Callable, Iterator
from contextlib import ExitStack

import pytest

from tests.support.rule_rows import SEEDS, Tables, random_tables


@pytest.fixture
def new_tables(database, database_url) -> Iterator[Callable[[int], Tables]]:
    with ExitStack() as stack:
        yield lambda seed: stack.enter_context(random_tables(database_url, seed))
    database.truncate()


@pytest.fixture(params=SEEDS, ids=["fixed", "random"])
def tables(request, new_tables) -> Tables:
    """Tables of a fixed seed, and of a random one, which each difference names."""
    return new_tables(request.param)


@pytest.fixture
def fixed_tables(new_tables) -> Tables:
    return new_tables(SEEDS[0])
