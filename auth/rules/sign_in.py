"""Whether a user may sign in, and whether a password is one to sign in with."""

from datetime import datetime

from auth.rules.refusals import Refusal
from auth.rules.users import Address, AddressKind, User, is_banned


def refusal_of_password(
    user: User | None,
    *,
    is_right: bool,
    provider: str,
    confirmed_kinds: frozenset[AddressKind],
    admin_only: bool,
    now: datetime,
) -> Refusal | None:
    """Rule 12: refuse an unknown user like a wrong password. Only the right one learns of another reason.

    Of several sign-ups for one address no password counts before its proof (rule 8).
    """
    if user is None or not is_right:
        return "invalid_credentials"
    refusal = refusal_of_sign_in(user, provider, confirmed_kinds, admin_only=admin_only, now=now)
    if refusal is None and not user.has_password:
        return "invalid_credentials"
    return refusal


def refusal_of_sign_in(
    user: User, provider: str, confirmed_kinds: frozenset[AddressKind], *, admin_only: bool, now: datetime
) -> Refusal | None:
    """Refuse banned users, addresses to be confirmed first, and at the console all but administrators.

    `confirmed_kinds` are the kinds of address that sign in only once they are confirmed.
    """
    if is_banned(user, now):
        return "user_banned"
    if provider == "email" and "email" in confirmed_kinds and not _is_confirmed(user.email):
        return "email_not_confirmed"
    if provider == "phone" and "phone" in confirmed_kinds and not _is_confirmed(user.phone):
        return "phone_not_confirmed"
    return "not_admin" if admin_only and user.role != "admin" else None


def _is_confirmed(address: Address | None) -> bool:
    return address is not None and address.confirmed_at is not None
