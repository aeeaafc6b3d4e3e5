"""Which link or code is good, and what a session that it opens is called."""

from collections.abc import Collection, Iterable
from datetime import datetime
from typing import Literal, Protocol, TypeVar

from auth.rules.policy import RECENT_AGE
from auth.rules.refusals import Refusal
from auth.rules.users import Person, gives_way, has_proved, is_banned, is_unused_sign_up, lacks_address

# How many links of one purpose work: the newest.
_WORKING_LINKS = 3
_CHANGES = ("email_change", "phone_change")


class Link(Protocol):
    """A row with a link, a code or both. `is_of_sign_up` if it carries a sign-up's own password and data.

    `newer` is the number of newer links of the same user and purpose, without those of sign-ups.
    `browser_hash` is that of the page which asked for the code, None for any.
    """

    @property
    def now(self) -> datetime: ...
    @property
    def purpose(self) -> str: ...
    @property
    def created_at(self) -> datetime: ...
    @property
    def expires_at(self) -> datetime: ...
    @property
    def spent_at(self) -> datetime | None: ...
    @property
    def is_of_sign_up(self) -> bool: ...
    @property
    def newer(self) -> int: ...
    @property
    def code_expires_at(self) -> datetime | None: ...
    @property
    def browser_hash(self) -> bytes | memoryview | None: ...


L = TypeVar("L", bound=Link)


def is_good_link(link: Link) -> bool:
    """A link is good once, until it expires, while it is one of the newest three of its purpose.

    The link of a notice (`undo`) stays good, or a thief could void it by three more changes. So does that of
    each sign-up.
    """
    if link.spent_at is not None or link.expires_at <= link.now:
        return False
    return link.purpose == "undo" or link.is_of_sign_up or link.newer < _WORKING_LINKS


def is_open_code(link: Link, is_right: bool, purposes: Collection[str]) -> bool:
    """Whether a typed code `is_right`, may be used for one of these purposes, and is not spent or expired."""
    if not is_right or link.purpose not in purposes or link.spent_at is not None:
        return False
    return link.code_expires_at is not None and link.code_expires_at > link.now


def code_for_browser(codes: Iterable[L], browser: bytes | None) -> L | None:
    """The one of a user's codes that works here. A code that a page asked for works in its browser alone.

    Of those for this browser or for any only the newest works, whatever the purpose: otherwise a guess could
    hit any.
    """
    usable = [code for code in codes if code.browser_hash is None or bytes(code.browser_hash) == browser]
    return max(usable, key=lambda code: code.created_at, default=None)


def method_of_session(purpose: str, *, was_mailed: bool) -> Literal["recovery", "otp"]:
    """Only a recovery that we mailed is one: a generated link proves nothing about the mailbox."""
    return "recovery" if purpose == "recovery" and was_mailed else "otp"


def ends_everything(purpose: str, *, was_mailed: bool) -> bool:
    """Whether a link ends everything as soon as it is used: a generated recovery link, which takes an account
    back (rule 19). A recovery that we mailed ends everything only with its new password.
    """
    return purpose == "recovery" and not was_mailed


def comes_back(holder: Person | None, address: str) -> bool:
    """Rule 25: the address of a notice is the user's again, unless another user has proved it since."""
    return holder is None or not has_proved(holder, address)


def asks_for_factor(verified_at: datetime | None, now: datetime) -> bool:
    """Rule 25: the link of a notice asks for a factor that is older than seven days.

    `verified_at` is that of the oldest, None for a user without a factor.
    """
    return verified_at is not None and verified_at <= now - RECENT_AGE


def asks_for_removed_factor(verified_at: datetime, removed_at: datetime, now: datetime) -> bool:
    """Rule 25: the link asks for a factor of that age, too, that was removed in the last seven days."""
    return removed_at > now - RECENT_AGE and asks_for_factor(verified_at, removed_at)


def is_due(purpose: str, person: Person, holder: Person | None) -> bool:
    """Whether a link or code may still be sent: for a sign-up, until its address is confirmed; for a new
    address, while nobody holds it, or a user who gives way.
    """
    if is_banned(person):
        return False
    if purpose == "signup":
        return person.email_confirmed_at is None
    if purpose == "sms_signup":
        return person.phone_confirmed_at is None
    if purpose in _CHANGES:
        return holder is None or gives_way(holder)
    return True


def can_be_declined(purpose: str, person: Person) -> bool:
    """Whether the page of a link offers to decline it: a sign-up that was not used, or a first address."""
    if purpose == "signup":
        return is_unused_sign_up(person)
    return purpose == "email_change" and lacks_address(person)


def refusal_of_use(purpose: str, target: str, person: Person, *, is_over: bool = False) -> Refusal | None:
    """Refuse a link or code for an address that is no longer the user's, nor the new one.

    `is_over` if a session asked for it whose provider was turned off since.

    A new address that the user has proved is not refused: an earlier transaction of the same use has changed
    it, before the token hook was asked.
    """
    if purpose in _CHANGES:
        is_users = target in (person.new_email, person.new_phone) or has_proved(person, target)
    else:
        is_users = target in (person.email, person.phone)
    if is_over or not is_users:
        return "otp_expired"
    return "user_banned" if is_banned(person) else None
