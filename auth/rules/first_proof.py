"""What the first proof of an address keeps (rule 7): what it proved. Everything else may be a stranger's."""

from typing import Literal

from auth.rules.links import Link
from auth.rules.users import AddressKind, Person, address_of, is_proved, is_unused_sign_up

# What proved an address: a link or code, by its purpose, a provider's word, or that of an administrator.
ProvedBy = Literal[
    "signup",
    "sms_signup",
    "invite",
    "magiclink",
    "recovery",
    "sms",
    "email_change",
    "phone_change",
    "undo",
    "provider",
    "administrator",
]
OF_SIGN_UPS = ("signup", "sms_signup")


def is_first_proof(person: Person, kind: AddressKind, value: str, proof: ProvedBy) -> bool:
    """Whether a proof removes everything else that the user holds.

    A proof of an address that the user does not hold removes nothing, nor does one of an address that was
    added after the other address was proved. An administrator's word is a first proof only for a sign-up,
    whose maker nobody knows.
    """
    if proof == "administrator" and person.made_by != "signup":
        return False
    own = address_of(person, kind)
    if own is None or own.value != value:
        return proof == "administrator" and not (is_proved(person, "email") or is_proved(person, "phone"))
    if own.is_proved:
        return False
    other = address_of(person, "phone" if kind == "email" else "email")
    if other is None or not other.is_proved or other.confirmed_at is None:
        return True
    return other.confirmed_at > own.added_at


def keeps_password(person: Person, proof: ProvedBy) -> bool:
    """Whether a first proof keeps the password: only a sign-up's own link or code does.

    It keeps that of the sign-up or of a generated link, or one that is vouched for. Any other proof removes
    the password, vouched for or not.
    """
    if proof not in OF_SIGN_UPS or person.password_hash is None:
        return False
    return person.made_by in ("signup", "link") or person.is_password_vouched


def disputes_sign_up(person: Person, *, has_same_password: bool, has_same_data: bool) -> bool:
    """Rule 8: until the proof, another password or other data make an address's sign-up nobody's.

    Then only a link confirms one of them, whose page shows whose it is: an owner may type the code of a
    stranger who signed up later. Equal ones are one sign-up. A request for another message has neither, and
    disputes the sign-up.
    """
    return is_unused_sign_up(person) and not (has_same_password and has_same_data)


def is_own_sign_up(link: Link, *, is_first: bool, is_shown: bool) -> bool:
    """Whether the password and data that a link of a sign-up carries become the user's.

    If several people have signed up, messages look alike: only the page (`is_shown`) tells whose sign-up it
    is.
    """
    return is_first and is_shown and link.is_of_sign_up


def sets_password(proof: ProvedBy, *, is_own: bool, carries_password: bool) -> bool:
    """Whether a spent link sets the password that it carries. An administrator's recovery link does too."""
    return carries_password and (is_own or proof not in OF_SIGN_UPS)
