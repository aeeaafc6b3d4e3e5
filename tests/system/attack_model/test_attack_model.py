"""The promises of docs/security.md about a thief: an owner and a thief of one user act in any order."""

import pytest

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


@pytest.mark.parametrize("seed", range(1, 4))
def test_members_and_keys_change_only_what_their_role_or_scope_allows(play_members, seed):
    play_members(seed)
