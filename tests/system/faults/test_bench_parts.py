"""Each part of the bench, for a moment: the figures say nothing, but the parts work."""

import pytest

from bench import compare
from bench.__main__ import REPORTS, Part, measure
from bench.figures import Pace

PARTS: dict[str, Part] = {
    **{part.__module__: part for parts in REPORTS.values() for part in parts},
    "bench.compare": compare.measure,
}


@pytest.mark.parametrize("name", PARTS)
def test_part_of_the_bench_runs(name):
    *taken, errors = measure([PARTS[name]], Pace(rounds=1, longest=0.1))
    assert taken
    assert errors.value == 0
