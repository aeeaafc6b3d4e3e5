"""Who is told (rule 23), when a notice is due (rule 24), and what stops a message that a stranger asks for
(rule 31).
"""

from datetime import datetime, timedelta
from typing import Literal

from auth.rules.users import AddressKind, Person, is_unused_sign_up

_PAUSE_OF_MAIL, _PAUSE_OF_SMS = timedelta(minutes=10), timedelta(hours=1)
Channel = Literal["mail", "sms"]


def address_of_notices(person: Person, *, offers_phone: bool) -> str | None:
    """The address that notices go to: the email, else the phone, that was proved before the act.

    Facts are from before it. `offers_phone` if the service sends SMS.
    """
    if person.email_proved:
        return person.email
    return person.phone if person.phone_proved and offers_phone else None


def message_of_sign_up(
    owner: Person | None, kind: AddressKind, *, is_new: bool, is_hidden: bool
) -> Literal["signup", "signup_attempt", "none"]:
    """What an address of this kind gets that somebody signs up with.

    `owner` is its user, whom this sign-up has made (`is_new`), or another one. If sign-up hides that an
    address is taken (`is_hidden`), the owner of an email is told.
    """
    if is_new:
        return "signup"
    if owner is None or not is_hidden:
        return "none"
    if is_unused_sign_up(owner):
        return "signup"
    return "signup_attempt" if kind == "email" else "none"


def message_of_first_address(
    *, is_mail: bool, is_taken: bool
) -> Literal["email_change", "phone_change", "signup_attempt", "none"]:
    """What an address gets that a user without one asks for, whom it may not tell that it is taken."""
    if is_mail:
        return "signup_attempt" if is_taken else "email_change"
    return "none" if is_taken else "phone_change"


def due_at(previous: datetime | None, *, is_mail: bool, now: datetime) -> datetime:
    """When a notice leaves: the first of a kind at once, the next ones some time after the `previous`.

    Further changes are added to it meanwhile.
    """
    if previous is None:
        return now
    return max(now, previous + (_PAUSE_OF_MAIL if is_mail else _PAUSE_OF_SMS))


def is_beyond_tenth(
    of_network: int | None, most: int, *, is_proved: bool, recipient_left: int | None
) -> bool:
    """Whether a network has used up its tenth of the total of a channel, of `most` messages.

    `of_network` is the number of its requests with this one, None for the service role key. `recipient_left`
    is what the windows of the recipient have left, negative if this one exceeds them, None without a window.
    The tenth does not stop what a recipient who proved the address may still get.
    """
    if of_network is None or of_network <= max(1, most // 10):
        return False
    return not is_proved or (recipient_left is not None and recipient_left < 0)


def what_stops_message(
    channel: Channel,
    total: int,
    most: int,
    *,
    is_beyond: bool,
    is_proved: bool,
    recipient_left: int | None,
) -> Literal["tenth", "total", "recipient"] | None:
    """What stops a message, of its network's tenth, the total of its channel, and its recipient's windows.

    `total` is the number of requests with this one, `is_beyond` the answer of `is_beyond_tenth`.
    A recipient that never proved itself gets nothing beyond three quarters of the SMS, or all of the mail;
    others no SMS beyond the total.
    """
    if is_beyond:
        return "tenth"
    allowed = (most * 3 + 3) // 4 if channel == "sms" and not is_proved else most
    if total > allowed and not (channel == "mail" and is_proved):
        return "total"
    return "recipient" if recipient_left is not None and recipient_left < 0 else None
