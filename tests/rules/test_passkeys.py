"""Offers of passkeys, and the first factor that sign-ins ask for (rules 18 and 51)."""

from dataclasses import replace

from auth.rules import factors, proofs
from auth.rules.proofs import Addition
from tests.rules.facts import MINUTE, NOW, POLICY, SECOND, WEEK, Person, Session
from tests.support.cases import cases

_BOB = Person()
_SIGN_IN = Session(method="password", aal="aal1", session_created_at=NOW, refreshed_at=NOW)
_LATE = NOW - 15 * MINUTE


@cases(
    ("sentence", "user", "session", "has_passkey", "is_offered"),
    [
        ("Who has just signed in is asked.", {}, {}, False, True),
        ("By a code, too.", {}, {"method": "magiclink"}, False, True),
        ("Not with a passkey, used or not.", {}, {}, True, False),
        ("Not 15 minutes later.", {}, {"session_created_at": _LATE}, False, False),
        ("But a second before.", {}, {"session_created_at": _LATE + SECOND}, False, True),
        ("A proof renews it.", {}, {"session_created_at": _LATE, "reauthenticated_at": NOW}, False, True),
        ("Not an administrator.", {"role": "admin"}, {}, False, False),
        ("Not an anonymous user.", {"made_by": "anonymous"}, {"method": "anonymous"}, False, False),
        (
            "Not who lacks a step.",
            {"oldest_factor_at": NOW - WEEK, "has_second_step": True},
            {},
            False,
            False,
        ),
        (
            "Nor who passed it long ago.",
            {"oldest_factor_at": NOW - WEEK, "has_second_step": True},
            {"aal": "aal2", "factor_proved_at": _LATE},
            False,
            False,
        ),
    ],
)
def test_passkey_is_offered_to_whom(sentence, user, session, has_passkey, is_offered):
    facts = replace(_BOB, **user), replace(_SIGN_IN, **session)
    assert factors.is_offered(*facts, POLICY, has_passkey=has_passkey) is is_offered


def test_passkey_is_not_offered_where_a_second_step_is_required():
    assert not factors.is_offered(_BOB, _SIGN_IN, replace(POLICY, mfa_required="all"), has_passkey=False)


@cases(
    ("user", "begins"),
    [
        ({}, True),
        ({"oldest_factor_at": NOW - WEEK}, True),  # a passkey
        ({"oldest_factor_at": NOW - WEEK, "has_second_step": True}, False),
    ],
)
def test_app_or_key_is_the_first_that_sign_ins_ask_for_after_passkeys_too(user, begins):
    assert factors.begins_asking(replace(_BOB, **user)) is begins


def test_passkey_that_was_not_used_is_a_recent_addition_at_any_age():
    addition = Addition(id="old", kind="passkey", added_at=NOW - 4 * WEEK)
    assert not proofs.is_recent(addition, NOW)
    assert proofs.is_recent(replace(addition, is_unused=True), NOW)
