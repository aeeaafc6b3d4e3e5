"""Tables of random rows."""

import pytest

from tests.support.rule_rows import FIXED_SEED, RANDOM_SEEDS, random_tables


@pytest.fixture(scope="module")
def _space(all_rows):
    """Rows that were rolled back take space, which scans of later tests would read."""
    yield
    all_rows.truncate()


@pytest.fixture(
    params=(FIXED_SEED, *RANDOM_SEEDS),
    ids=("fixed", *(f"random-{place}" for place in range(len(RANDOM_SEEDS)))),
)
def tables(request, _space, database, database_url):
    """Tables of a fixed seed, and of random ones, which each difference names."""
    with random_tables(database_url, request.param) as tables:
        yield tables
