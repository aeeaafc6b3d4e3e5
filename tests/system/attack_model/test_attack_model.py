"""The promises of docs/security.md about a thief: an owner and a thief of one user act in any order."""

import pytest

from tests.system.attack_model.copies import Copies
from tests.system.attack_model.invariants import INVARIANTS

pytest_plugins = ["tests.system.attack_model.fixtures"]


@pytest.mark.parametrize("seed", range(1, 6))
def test_thief_gains_nothing_that_is_promised(play, seed):
    play(seed)


@pytest.mark.parametrize("seed", range(1, 5))
def test_stranger_who_signs_up_for_the_same_address_gains_nothing(play_sign_ups, seed):
    play_sign_ups(seed)


@pytest.mark.parametrize("seed", range(1, 3))
def test_stranger_who_sends_the_code_of_a_device_gets_in_by_the_victims_decision_alone(play_sent_codes, seed):
    play_sent_codes(seed)


@pytest.mark.parametrize("seed", range(1, 3))
def test_malicious_customer_opens_only_users_of_its_domains_that_it_made_or_was_given(play_customers, seed):
    play_customers(seed)


@pytest.mark.parametrize("seed", range(1, 4))
def test_owner_is_told_of_a_thief_who_signs_in_from_elsewhere(play_sign_ins, seed):
    play_sign_ins(seed)


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
