"""Tables of random rows."""

import pytest

from tests.support.rule_rows import FIXED_SEED, RANDOM_SEED, random_tables


@pytest.fixture(scope="module", autouse=True)
def _space(all_rows):
    """Rows that were rolled back take space, which scans of later tests would read."""
    yield
    all_rows.truncate()


@pytest.fixture(params=(FIXED_SEED, RANDOM_SEED), ids=("fixed", "random"))
def tables(request, database, database_url):
    """Tables of a fixed seed, and of a random one, which each difference names."""
    with random_tables(database_url, request.param) as tables:
        yield tables
