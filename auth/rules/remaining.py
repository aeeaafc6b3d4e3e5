"""What must remain (rule 14): something that can sign in, and an administrator who can."""

from collections.abc import Collection

from auth.rules.refusals import Refusal
from auth.rules.users import ADDRESS_KINDS, Address, Person, User, address_of


def can_sign_in(
    person: Person, providers: Collection[str], has_passkey: bool, usable: Collection[str]
) -> bool:
    """Whether something can sign in: an identity at one of its `providers`, a proved address, or a passkey.

    `providers` has `email` and `phone` for the user's addresses. `usable` are the configured providers, and
    email, phone and passkey if they are enabled. If it contains `password`, a password makes an address count
    that is confirmed and not proved. A second factor is not a way to sign in.
    """
    if has_passkey and "passkey" in usable:
        return True
    has_password = "password" in usable and person.password_hash is not None
    counts: dict[str, bool] = {
        kind: _signs_in(address_of(person, kind), has_password) for kind in ADDRESS_KINDS
    }
    return any(provider in usable and counts.get(provider, True) for provider in providers)


def _signs_in(address: Address | None, has_password: bool) -> bool:
    if address is None:
        return False
    return address.is_proved or (has_password and address.confirmed_at is not None)


def refusal_of_leaving(user: User, other_administrators: int) -> Refusal | None:
    """Refuse to delete, ban or demote the last administrator who is not banned."""
    return "last_administrator" if user.role == "admin" and other_administrators == 0 else None
