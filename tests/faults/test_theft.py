"""The model of theft, at length and each time with other examples. `THEFT_SEED=7` repeats those of a seed."""

import os
import random

import pytest

from tests.theft.model import EXAMPLES

pytest_plugins = ["tests.theft.fixtures"]


@pytest.mark.selection
def test_thief_gains_nothing_that_is_promised(play, scale, note):
    given = os.environ.get("THEFT_SEED")
    rounds = 1 if given else scale(300, 10)
    for _ in range(rounds):
        seed = int(given) if given else random.getrandbits(32)
        try:
            play(seed)
        except BaseException as error:
            error.add_note(f"THEFT_SEED={seed} repeats it")
            raise
    note("an owner and a thief act in any order", rounds * EXAMPLES, "the four promises held")
