"""What a credential is good for, and when it ends: an owner, an operator, a thief and strangers act in any order."""

import pytest

from tests.system.attack_model.copies import Copies
from tests.system.attack_model.invariants import INVARIANTS

pytest_plugins = ["tests.system.attack_model.fixtures"]

# Separate assertions, each with its own seed.
APART = {"an operator's reset": 2, "the demanded level": 1, "the first factor": 2}
TOGETHER = [name for name in INVARIANTS if name not in APART]


@pytest.mark.parametrize("seed", range(1, 3))
def test_what_a_thief_holds_ends_and_opens_only_what_it_is_for(play_takeover, seed):
    play_takeover(seed, *TOGETHER)


@pytest.mark.parametrize(("invariant", "seed"), APART.items())
def test_nothing_below_a_new_level_or_before_a_reset_gives_a_token(play_takeover, invariant, seed):
    play_takeover(seed, invariant)


def test_thief_with_a_copied_refresh_token_is_found_out(play_takeover):
    play_takeover(1, "a recovery", model=Copies)
