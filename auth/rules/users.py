"""Who a user is: the facts, and what follows from one user alone."""

import math
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Literal, Protocol

AddressKind = Literal["email", "phone"]
ADDRESS_KINDS: tuple[AddressKind, ...] = ("email", "phone")
# The last second of ISO 8601, which ends a permanent ban.
_FOREVER = datetime(9999, 12, 31, 23, 59, 59, tzinfo=UTC)


class User(Protocol):
    """A row about a user. `now` is the time of the facts.

    `made_by` says how the user was created: by a signup, an administrator, an import, a message (a code that
    a stranger asked for), an invitation, a link (a generated one), oauth (a provider), or anonymous.
    `converted_at` is when an anonymous user became permanent.
    """

    @property
    def now(self) -> datetime: ...
    @property
    def role(self) -> str: ...
    @property
    def made_by(self) -> str: ...
    @property
    def converted_at(self) -> datetime | None: ...
    @property
    def banned_until(self) -> datetime | None: ...


class UserOfToken(User, Protocol):
    """`oldest_factor_at` is when the oldest factor that the user has was verified, passkeys included;
    `has_second_step` whether one is not a passkey.
    """

    @property
    def oldest_factor_at(self) -> datetime | None: ...
    @property
    def has_second_step(self) -> bool: ...


class Person(UserOfToken, Protocol):
    """All facts about a user.

    An address was added when the user got it. It is confirmed by AUTH_AUTOCONFIRM or an administrator, too,
    and proved only by what its owner has shown, with a link, a code or a provider. `is_password_vouched` if
    an operator or an import has set the password for the address. `new_email` and `new_phone` are those that
    the user has asked for.
    """

    @property
    def email(self) -> str | None: ...
    @property
    def email_added_at(self) -> datetime: ...
    @property
    def email_confirmed_at(self) -> datetime | None: ...
    @property
    def email_proved(self) -> bool: ...
    @property
    def phone(self) -> str | None: ...
    @property
    def phone_added_at(self) -> datetime: ...
    @property
    def phone_confirmed_at(self) -> datetime | None: ...
    @property
    def phone_proved(self) -> bool: ...
    @property
    def last_sign_in_at(self) -> datetime | None: ...
    @property
    def password_hash(self) -> str | None: ...
    @property
    def is_password_vouched(self) -> bool: ...
    @property
    def invited_at(self) -> datetime | None: ...
    @property
    def new_email(self) -> str | None: ...
    @property
    def new_phone(self) -> str | None: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Address:
    """An email address or phone number of a person."""

    value: str
    added_at: datetime
    confirmed_at: datetime | None
    is_proved: bool


def is_anonymous(user: User) -> bool:
    """Until the first address is confirmed or identity linked, a user's sessions are the only way in."""
    return user.made_by == "anonymous" and user.converted_at is None


def is_banned(user: User) -> bool:
    """A ban ends at its moment."""
    return user.banned_until is not None and user.banned_until > user.now


def end_of_ban(seconds: float | None, now: datetime) -> datetime | None:
    """When a ban of this length ends; without one, there is no ban."""
    if not seconds:
        return None
    # Rounded like an interval of Postgres.
    return _FOREVER if seconds == math.inf else now + timedelta(microseconds=round(seconds * 1e6))


def has_factor(user: UserOfToken) -> bool:
    """A user with a verified factor or passkey proves with a factor (rule 13)."""
    return user.oldest_factor_at is not None


def address_of(person: Person, kind: AddressKind) -> Address | None:
    value = person.email if kind == "email" else person.phone
    if value is None:
        return None
    return Address(
        value=value,
        added_at=person.email_added_at if kind == "email" else person.phone_added_at,
        confirmed_at=person.email_confirmed_at if kind == "email" else person.phone_confirmed_at,
        is_proved=person.email_proved if kind == "email" else person.phone_proved,
    )


def is_proved(person: Person, kind: AddressKind) -> bool:
    """Whether the person has proved the address of this kind."""
    return person.email_proved if kind == "email" else person.phone_proved


def has_proved(person: Person, value: str) -> bool:
    """Whether an address is one that the person has proved."""
    return (person.email == value and person.email_proved) or (person.phone == value and person.phone_proved)


def lacks_address(person: Person) -> bool:
    """Whether the next address is the first. It may belong to somebody unrelated to the user."""
    return is_anonymous(person) or (person.email is None and person.phone is None)


def gives_way(person: Person) -> bool:
    """Rule 7: until the first proof, a user whom a stranger may have made is in nobody's way.

    Another user may ask for the address, and nothing is deleted yet.
    """
    if person.made_by not in ("signup", "message") or person.last_sign_in_at is not None:
        return False
    if person.email_confirmed_at is not None or person.phone_confirmed_at is not None:
        return False
    return not is_banned(person) and not person.is_password_vouched


def is_unused_sign_up(person: Person) -> bool:
    """The receiver of its mail may decline an unused sign-up."""
    return person.made_by == "signup" and gives_way(person)


def is_replaced(person: Person) -> bool:
    """Whether a user who gives way is deleted once another one proves the address, or an administrator
    creates its user.
    """
    return gives_way(person) and person.role != "admin"


def is_only_requested(person: Person) -> bool:
    """Whether all that there is of a user is a request for a code: the first proof will let the user in."""
    return person.made_by == "message" and is_replaced(person)


def has_open_invitation(person: Person) -> bool:
    """An invitation is open until its user accepts it, or gets a password."""
    if person.invited_at is None or person.password_hash is not None:
        return False
    return person.email is None or person.email_confirmed_at is None
