"""Who a user is: the facts, and what follows from one user alone."""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Literal

AddressKind = Literal["email", "phone"]
ADDRESS_KINDS: tuple[AddressKind, ...] = ("email", "phone")
# The last second of ISO 8601, which ends a permanent ban.
_FOREVER = datetime(9999, 12, 31, 23, 59, 59, tzinfo=UTC)


@dataclass(frozen=True, slots=True, kw_only=True)
class Address:
    """An email address or phone number.

    `added_at` is when the user got it. `confirmed_at` counts what AUTH_AUTOCONFIRM or an administrator
    confirmed, too; `is_proved` only what its owner has shown, with a link, a code or a provider.
    """

    value: str
    added_at: datetime
    confirmed_at: datetime | None = None
    is_proved: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class User:
    """`made_by` says how the user was created: by a signup, an administrator, an import, a message (a code
    that a stranger asked for), an invitation, a link (a generated one), oauth (a provider), or anonymous.

    `converted_at` is when an anonymous user became permanent. `is_password_vouched` if an operator or an
    import has set the password for the address. `oldest_factor_at` is when the oldest factor that the user
    has was verified, passkeys included; `has_second_step` whether one is not a passkey.
    """

    role: str
    made_by: str
    email: Address | None = None
    phone: Address | None = None
    converted_at: datetime | None = None
    banned_until: datetime | None = None
    last_sign_in_at: datetime | None = None
    has_password: bool = False
    is_password_vouched: bool = False
    invited_at: datetime | None = None
    oldest_factor_at: datetime | None = None
    has_second_step: bool = False
    app_metadata: Mapping[str, object] = field(default_factory=dict)


def is_anonymous(user: User) -> bool:
    """Until the first address is confirmed or identity linked, a user's sessions are the only way in."""
    return user.made_by == "anonymous" and user.converted_at is None


def is_banned(user: User, now: datetime) -> bool:
    """A ban ends at its moment."""
    return user.banned_until is not None and user.banned_until > now


def end_of_ban(seconds: float | None, now: datetime) -> datetime | None:
    """When a ban of this length ends; without one, there is no ban."""
    if not seconds:
        return None
    # Rounded like an interval of Postgres.
    return _FOREVER if seconds == math.inf else now + timedelta(microseconds=round(seconds * 1e6))


def has_factor(user: User) -> bool:
    """A user with a verified factor or passkey proves with a factor (rule 13)."""
    return user.oldest_factor_at is not None


def address_of(user: User, kind: AddressKind) -> Address | None:
    return user.email if kind == "email" else user.phone


def is_proved(user: User, kind: AddressKind) -> bool:
    """Whether the user has proved the address of this kind."""
    address = address_of(user, kind)
    return address is not None and address.is_proved


def has_proved(user: User, value: str) -> bool:
    """Whether an address is one that the user has proved."""
    addresses = (user.email, user.phone)
    return any(address is not None and address.value == value and address.is_proved for address in addresses)


def lacks_address(user: User) -> bool:
    """Whether the next address is the first. It may belong to a person unrelated to the user."""
    return is_anonymous(user) or (user.email is None and user.phone is None)


def gives_way(user: User, now: datetime) -> bool:
    """Rule 7: until the first proof, a user whom a stranger may have made is in nobody's way.

    Another user may ask for the address, and nothing is deleted yet.
    """
    if user.made_by not in ("signup", "message") or user.last_sign_in_at is not None:
        return False
    if any(address is not None and address.confirmed_at is not None for address in (user.email, user.phone)):
        return False
    return not is_banned(user, now) and not user.is_password_vouched


def is_unused_sign_up(user: User, now: datetime) -> bool:
    """The receiver of its mail may decline an unused sign-up."""
    return user.made_by == "signup" and gives_way(user, now)


def is_replaced(user: User, now: datetime) -> bool:
    """Whether a user who gives way is deleted once another one proves the address, or an administrator
    creates its user.
    """
    return gives_way(user, now) and user.role != "admin"


def has_open_invitation(user: User) -> bool:
    """An invitation is open until its user accepts it, or gets a password."""
    if user.invited_at is None or user.has_password:
        return False
    return user.email is None or user.email.confirmed_at is None
