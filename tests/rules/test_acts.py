"""Which proof a change takes, what it ends, and what is counted, a sentence and an example each."""

import inspect
import re
from dataclasses import replace
from typing import Any

from auth.rules import counts, ends, factors, proofs
from auth.rules.counts import KnownNetwork
from auth.rules.ends import End
from auth.rules.policy import on_pages
from auth.rules.proofs import Addition, Change
from tests.rules.facts import (
    ALICE,
    ANCIENT,
    ANONYMOUS,
    CAROL,
    DAY,
    FACTOR_FOR_ALL,
    FRESH,
    HOUR,
    MICROSECOND,
    MINUTE,
    NOW,
    POLICY,
    RAISED,
    RECOVERY,
    SECOND,
    STALE,
    UNUSED,
    WEEK,
    WITH_APP,
    Session,
)
from tests.support.cases import cases

ALWAYS = replace(POLICY, change_age=0 * SECOND, proof_age=0 * SECOND)
WITH_NEW_APP = replace(WITH_APP, oldest_factor_at=NOW - DAY)
BY_NOBODY = replace(STALE, method="anonymous")
STALE_FACTOR = replace(RAISED, factor_proved_at=NOW - 15 * MINUTE)
NEEDED, BELOW = "reauthentication_needed", "insufficient_aal"


def of_age(age: Any, session: Session = FRESH) -> Session:
    return replace(session, session_created_at=NOW - age)


@cases(
    ("sentence", "user", "session", "words", "proof", "refusal"),
    [
        ("A fresh sign-in may add an address.", ALICE, FRESH, "add email", None, None),
        ("A stale one may not.", ALICE, STALE, "add email", None, NEEDED),
        ("It is fresh for fifteen minutes.", ALICE, of_age(15 * MINUTE), "add email", None, NEEDED),
        ("A proof with the request does.", ALICE, STALE, "add email", "proof", None),
        ("A password is changed within a day.", ALICE, STALE, "change password", None, None),
        ("That ends at its moment.", ALICE, of_age(DAY), "change password", None, NEEDED),
        ("A fresh recovery is the proof for it.", ALICE, RECOVERY, "change password", None, None),
        ("Metadata needs no proof.", ALICE, ANCIENT, "change metadata", None, None),
        ("Nor does removing an API key.", ALICE, ANCIENT, "remove api_key", None, None),
        ("An anonymous user adds a first address.", ANONYMOUS, BY_NOBODY, "add email", None, None),
        ("Or a first passkey.", ANONYMOUS, BY_NOBODY, "add passkey", None, None),
        ("A user with a factor is below the level.", WITH_APP, FRESH, "add email", None, BELOW),
        ("To remove an API key, too.", WITH_APP, FRESH, "remove api_key", None, BELOW),
        ("A user with a factor proves with it.", WITH_APP, RAISED, "add email", None, None),
        ("And with nothing else.", WITH_APP, STALE_FACTOR, "add email", "code", f"mfa.{NEEDED}"),
        ("A first factor takes any proof.", ALICE, STALE, "add factor", "proof", None),
        ("An administrator's takes a code.", CAROL, FRESH, "add factor", "proof", f"code.{NEEDED}"),
        ("With the code it is enrolled.", CAROL, FRESH, "add factor", "code", None),
        ("Recovery codes need the second factor.", ALICE, FRESH, "add recovery_codes", None, BELOW),
    ],
)
def test_change_takes_a_proof(sentence, user, session, words, proof, refusal):
    verb, kind = words.split()
    added_at = NOW - DAY if verb == "remove" else None
    change = Change(verb=verb, kind=kind, added_at=added_at)
    assert proofs.refusal_of_change(change, user, session, session.aal, proof, POLICY) == refusal


@cases(
    ("sentence", "user", "session", "words", "policy", "refusal"),
    [
        ("A recovery is the proof even here.", ALICE, RECOVERY, "change password", ALWAYS, None),
        ("For ten minutes.", ALICE, of_age(10 * MINUTE, RECOVERY), "change password", ALWAYS, NEEDED),
        ("For its password alone.", ALICE, RECOVERY, "change account", ALWAYS, NEEDED),
        ("A factor counts for five minutes.", WITH_APP, RAISED, "add email", ALWAYS, None),
        ("And no longer.", WITH_APP, STALE_FACTOR, "add email", ALWAYS, f"mfa.{NEEDED}"),
        (
            "A user who must enrol a factor may remove a key.",
            ALICE,
            ANCIENT,
            "remove api_key",
            FACTOR_FOR_ALL,
            None,
        ),
    ],
)
def test_change_takes_a_proof_by_a_setting(sentence, user, session, words, policy, refusal):
    verb, kind = words.split()
    change = Change(verb=verb, kind=kind)
    assert proofs.refusal_of_change(change, user, session, session.aal, None, policy) == refusal


@cases(
    ("sentence", "user", "session", "kind", "age", "refusal"),
    [
        ("A recovery takes a thief's factor back.", WITH_NEW_APP, RECOVERY, "factor", DAY, None),
        ("Not a factor of eight days.", WITH_APP, RECOVERY, "factor", 8 * DAY, BELOW),
        ("Nor anything, where one is that old.", WITH_APP, RECOVERY, "email", DAY, BELOW),
        ("Nor does another session.", WITH_NEW_APP, FRESH, "factor", DAY, BELOW),
    ],
)
def test_recovery_takes_back_what_a_thief_may_have_added(sentence, user, session, kind, age, refusal):
    change = Change(verb="remove", kind=kind, added_at=NOW - age)
    assert proofs.refusal_of_change(change, user, session, session.aal, None, POLICY) == refusal


@cases(
    ("sentence", "oldest", "session", "age", "takes_back"),
    [
        ("What was added in the last seven days.", None, RECOVERY, WEEK - MICROSECOND, True),
        ("And not before.", None, RECOVERY, WEEK, False),
        ("Nor since the recovery.", None, RECOVERY, MINUTE, False),
        ("A factor of less than seven days is not asked for.", WEEK - MICROSECOND, RECOVERY, DAY, True),
        ("An older one is.", WEEK, RECOVERY, DAY, False),
        ("A session that the recovery opened does not.", None, replace(RECOVERY, opened_by="it"), DAY, False),
        ("Nor one that was raised since.", None, replace(RECOVERY, aal="aal2"), DAY, False),
    ],
)
def test_session_may_take_back_an_addition(sentence, oldest, session, age, takes_back):
    user = replace(ALICE, oldest_factor_at=oldest and NOW - oldest)
    assert proofs.may_take_back(user, session, NOW - age) is takes_back


def test_password_is_no_proof_of_a_user_with_a_factor():
    assert proofs.has_proof(ALICE, FRESH, POLICY)
    assert not proofs.has_proof(WITH_APP, FRESH, POLICY)


@cases(
    ("sentence", "kinds", "policy", "refusal"),
    [
        ("Every act counts.", ["metadata", "email"], POLICY, NEEDED),
        ("The level is told before the proof.", ["email", "recovery_codes"], POLICY, BELOW),
    ],
)
def test_changes_take_a_proof_together(sentence, kinds, policy, refusal):
    changes = [Change(verb="change", kind=kind) for kind in kinds]
    assert proofs.refusal_of_changes(changes, ALICE, STALE, "aal1", None, policy) == refusal


def test_order_of_refusals_lists_all_that_a_change_may_meet_and_begins_with_the_level():
    source = inspect.getsource(proofs.refusal_of_change)
    assert {*re.findall(r'"((?:\w+\.)?\w+_needed|insufficient_aal)"', source)} == {*proofs._IN_ORDER}
    assert proofs._IN_ORDER[0] == "insufficient_aal"
    admin = replace(ALICE, role="admin")
    changes = [Change(verb="add", kind="factor"), Change(verb="change", kind="recovery_codes")]
    alone = [proofs.refusal_of_changes([each], admin, STALE, "aal1", None, POLICY) for each in changes]
    assert alone == ["code.reauthentication_needed", BELOW]
    assert proofs.refusal_of_changes(changes, admin, STALE, "aal1", None, POLICY) == BELOW


ADDED = [
    Addition(id="new", kind="identity", added_at=NOW - DAY),
    Addition(id="old", kind="identity", added_at=NOW - WEEK),
    Addition(id="a key", kind="api_key", added_at=NOW - DAY),
]


@cases(
    ("verb", "kind", "id", "removed"),
    [
        ("remove", None, "new", [("identity", NOW - DAY)]),
        ("remove", "identity", None, [("identity", NOW - DAY), ("identity", NOW - WEEK)]),
        ("remove", None, "a key", [("api_key", NOW - DAY)]),
        ("remove", "email", None, [("email", None)]),
        ("add", "identity", None, [("identity", None)]),
    ],
)
def test_removal_names_what_it_removes_by_its_id_or_all_of_a_kind(verb, kind, id, removed):
    changes = proofs.changes_on(verb, kind, id, ADDED)
    assert [(change.kind, change.added_at) for change in changes] == removed


@cases(("age", "is_recent"), [(WEEK, True), (WEEK + MICROSECOND, False)])
def test_addition_is_recent_for_seven_days(age, is_recent):
    assert proofs.is_recent(replace(ADDED[0], added_at=NOW - age), NOW) is is_recent


def test_row_written_a_microsecond_after_a_providers_sign_up_is_no_addition():
    moments = [NOW + later * MICROSECOND for later in (1, 2)]
    assert [proofs.time_of_addition(moment, NOW) for moment in moments] == [None, moments[1]]


@cases(
    ("is_of_session", "added_at", "proof"),
    [(True, NOW - WEEK, "proof"), (True, None, "code"), (False, NOW - DAY, "code")],
)
def test_code_to_an_address_of_this_week_adds_no_administrators_factor_unless_a_command_made_it(
    is_of_session, added_at, proof
):
    facts = {"is_of_session": is_of_session, "address_added_at": added_at}
    assert proofs.proof_of_code(**facts, now=NOW) == proof


def test_administrator_changes_users_and_no_other_administrator():
    assert proofs.refusal_of_target(ALICE) is None
    assert proofs.refusal_of_target(CAROL) == "target.insufficient_permissions"


@cases(
    ("age", "proof_age", "change_age"),
    [
        (0 * SECOND, 5 * MINUTE, 5 * MINUTE),
        (5 * MINUTE + SECOND, 5 * MINUTE + SECOND, 5 * MINUTE + SECOND),
        (HOUR, 15 * MINUTE, HOUR),
    ],
)
def test_proof_on_the_pages_counts_for_five_minutes_at_least(age, proof_age, change_age):
    policy = on_pages(replace(POLICY, change_age=age, proof_age=min(age, 15 * MINUTE)))
    assert (policy.proof_age, policy.change_age) == (proof_age, change_age)
    never = replace(POLICY, change_age=None)
    assert on_pages(never) == never


@cases(
    ("is_verified", "is_begun_here", "age", "may_verify"),
    [
        (False, True, MINUTE, True),
        (False, True, HOUR, False),
        (False, False, MINUTE, False),
        (True, False, HOUR, True),
    ],
)
def test_factor_is_verified_by_the_session_that_began_it_within_its_time_or_again(
    is_verified, is_begun_here, age, may_verify
):
    facts = {"is_verified": is_verified, "is_begun_here": is_begun_here, "created_at": NOW - age}
    assert factors.may_verify(**facts, lifetime=HOUR, now=NOW) is may_verify


@cases(
    ("first", "moment"),
    [(None, NOW - WEEK), (NOW - 8 * DAY, NOW - WEEK), (NOW - WEEK, NOW - WEEK + HOUR)],
)
def test_factors_of_more_than_a_week_are_trusted_and_those_of_the_first_hour(first, moment):
    assert factors.trusted_before(first, NOW) == moment


@cases(
    ("before", "now", "is_synced", "has_risen", "may_be_copy"),
    [
        (1, 2, False, True, False),
        (1, 1, False, False, True),
        (1, 1, True, False, False),
        (1, 1, None, False, False),
        (0, 0, False, True, False),
    ],
)
def test_key_whose_counter_does_not_rise_may_be_a_copy(before, now, is_synced, has_risen, may_be_copy):
    assert factors.counter_rose(before, now) is has_risen
    assert factors.may_be_copy(before, now, is_synced=is_synced) is may_be_copy


@cases(
    ("sentence", "reason", "has_session", "size"),
    [
        ("A session that ran out ends alone.", "too_many_sessions", True, {"reach": "alone"}),
        ("Signing out ends this one.", "logout", True, {"reach": "this"}),
        ("A change ends the others.", "password_changed", True, {"reach": "others"}),
        ("Without a session all end.", "password_changed", False, {"reach": "all"}),
        ("A first factor ends keys below it.", "factor_added", True, {"reach": "all", "keys_up_to": "aal1"}),
        (
            "Everything is keys and grants, too.",
            "recovered",
            True,
            {"reach": "all", "keys_up_to": "aal2", "with_grants": True},
        ),
    ],
)
def test_reason_decides_what_ends(sentence, reason, has_session, size):
    assert ends.what_ends(reason, has_session=has_session) == End(reason=reason, **size)


NETWORK = "203.0.113.7"
NETWORKS = [f"192.0.2.{place}" for place in range(10)]


@cases(
    ("owner", "is_known", "limited"),
    [
        (
            "id",
            False,
            [f"login alice {NETWORK} 2", "account alice None 5", f"user id {NETWORK} 2", "user id None 5"],
        ),
        (
            None,
            False,
            [
                f"login alice {NETWORK} 2",
                "account alice None 5",
                f"nobody alice {NETWORK} 2",
                "nobody alice None 5",
            ],
        ),
        ("id", True, [f"login alice {NETWORK} 2", f"user id {NETWORK} 2"]),
    ],
)
def test_wrong_passwords_count_for_address_and_user_here_and_in_all_unknown_networks(
    owner, is_known, limited
):
    limits = counts.password_limits("alice", owner, NETWORK, is_known=is_known, own=(2, 60), of_all=(5, 60))
    assert [f"{each.kind} {each.subject} {each.network} {each.amount}" for each in limits] == limited


def passed(*names: str) -> list[KnownNetwork]:
    return [KnownNetwork(network=name, passed_at=NOW - place * DAY) for place, name in enumerate(names)]


def by_link(age: Any, *names: str) -> list[KnownNetwork]:
    return [KnownNetwork(network=name, mail_proved_at=NOW - age) for name in names]


@cases(
    ("sentence", "networks", "is_known"),
    [
        ("Where every step was passed is known.", passed(NETWORK), True),
        ("Of the last ten such networks.", passed(*NETWORKS, NETWORK), False),
        ("Browsers take no place of one.", passed("browser 1", *NETWORKS[:9], NETWORK), True),
        ("Where a mailed link was used is known for a day.", by_link(DAY - SECOND, NETWORK), True),
        ("That ends at its moment.", by_link(DAY, NETWORK), False),
    ],
)
def test_network_is_known(sentence, networks, is_known):
    assert counts.is_known_network(networks, NETWORK, NOW) is is_known


@cases(("others", "is_recorded"), [(("a", "b", NETWORK), True), (("a", "b", "c"), False)])
def test_three_networks_a_day_are_known_by_a_mailed_link_without_those_that_were_passed(others, is_recorded):
    networks = [*by_link(HOUR, *others), *(replace(each, mail_proved_at=NOW) for each in passed(*NETWORKS))]
    assert counts.records_mail_proof(networks, NETWORK, NOW) is is_recorded


@cases(("user", "is_known", "is_new"), [(ALICE, False, True), (ALICE, True, False), (UNUSED, False, False)])
def test_sign_in_from_a_new_network_and_browser_is_new_unless_it_is_the_first(user, is_known, is_new):
    assert counts.is_new_sign_in(user, is_known=is_known) is is_new
