"""Whom auth/rules/promotion.py refuses as an administrator."""

from dataclasses import dataclass

import pytest

from auth.rules.promotion import refusal_of_promotion


@dataclass(frozen=True)
class Way:
    type: str
    is_by_key: bool = False


EMAIL, PHONE, PASSWORD = Way("email"), Way("phone"), Way("password")
KEYS_EMAIL, KEYS_PHONE, KEYS_PASSKEY = (Way(type, True) for type in ("email", "phone", "passkey"))


@pytest.mark.parametrize(
    ("ways", "remains", "refusal"),
    [
        ([EMAIL, PASSWORD], True, None),
        ([EMAIL, PHONE, KEYS_PASSKEY], True, None),
        ([KEYS_EMAIL, PASSWORD], True, "email_by_key.validation_failed"),
        ([EMAIL, KEYS_PHONE], True, "phone_by_key.validation_failed"),
        ([KEYS_EMAIL, KEYS_PHONE], False, "email_by_key.validation_failed"),
        ([KEYS_PASSKEY], False, "all_by_key.validation_failed"),
        # Nothing of a key was taken away: such a user could not sign in before either.
        ([EMAIL], False, None),
        ([], False, None),
    ],
)
def test_address_of_a_key_is_refused_and_the_last_way_to_sign_in(ways, remains, refusal):
    assert refusal_of_promotion(ways, remains=remains) == refusal
