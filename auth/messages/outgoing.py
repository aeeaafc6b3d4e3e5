"""Outgoing email and SMS: the link and the code of a message, its rows, its quota, and notices of changes."""

import uuid
from collections.abc import Mapping, Sequence
from typing import Any
from urllib.parse import urlencode

from flask import request
from limits import RateLimitItem

from auth import addresses
from auth.context import latchkey
from auth.delivery import dev_inbox
from auth.logs import ThrottledLog
from auth.tokens import one_time
from auth.web import counts, g
from auth.web.errors import ApiError
from auth.web.limits import Window, note, refusal
from sql import Transaction, queries

_over_quota = ThrottledLog("message_not_sent")
_OVER_QUOTA = "not sent: quota (AUTH_RATE_LIMIT_MESSAGES and the limits below it)"
_MAX_LANGUAGES = 200
# Seconds. What a stranger's message costs must not show in the requests that follow it.
_LONGEST_DELAY = 0.75
# What `write_token` needs beside the link and the code.
TOKEN_COLUMNS = dict.fromkeys(
    (
        *("redirect_to", "code_challenge", "session_id", "password_hash", "user_metadata"),
        *("user_agent", "browser_hash", "ip"),
    )
)

Windows = Sequence[tuple[str, RateLimitItem]]


def new_id() -> str:
    return str(uuid.uuid4())


def own_url(path: str, parameters: Mapping[str, str]) -> str:
    return f"{latchkey.settings.base_url}/{path}?{urlencode(parameters)}"


class Message:
    """An email or SMS, with its link and code. An SMS has no link unless `sms_link`."""

    def __init__(
        self,
        address: str,
        *,
        link: bool = True,
        code: bool = True,
        lifetime: int = one_time.LINK_LIFETIME,
        sms_link: bool = False,
    ) -> None:
        is_mail = addresses.is_email(address)
        code_lifetime = one_time.MAIL_CODE_LIFETIME if is_mail else one_time.SMS_CODE_LIFETIME
        self.id = new_id()
        self.link = one_time.new_token() if link and (sms_link or is_mail) else None
        self.code = one_time.new_code() if code else None
        self._address = address
        self._token_id = new_id() if self.link or self.code else None
        self._link_lifetime = lifetime if self.link else None
        self._code_lifetime = code_lifetime if self.code else None

    def write_token(self, tx: Transaction, user_id: str | None, purpose: str, **others: Any) -> None:
        """Write link and code as one row; none without a `user_id`. `others` are further columns."""
        if self.code and others.get("browser_hash"):
            self._code_lifetime = one_time.PAGE_CODE_LIFETIME
        queries.write_token(
            tx,
            token_id=self._token_id,
            user_id=user_id,
            purpose=purpose,
            target=self._address,
            token_hash=one_time.hash_token(self.link) if self.link else None,
            link_lifetime=self._link_lifetime,
            code_mac=latchkey.codes.mac(self._address, self.code) if self.code else None,
            code_lifetime=self._code_lifetime,
            **TOKEN_COLUMNS | others,
        )

    def write_undo_token(self, tx: Transaction, user_id: str) -> None:
        """Write the link by which the reader of a notice takes the account back."""
        row = queries.write_undo_token(
            tx,
            token_id=self._token_id,
            user_id=user_id,
            target=self._address,
            token_hash=one_time.hash_token(self.link or ""),
            lifetime=self._link_lifetime,
        )
        self._link_lifetime = row.lifetime

    def write(
        self, tx: Transaction, user_id: str | None, kind: str, *, secret: bool = True, **others: Any
    ) -> None:
        """Write the message, with link and code if `secret`. `others` are variables of its template."""
        secrets = {name: value for name, value in {"token": self.link, "code": self.code}.items() if value}
        # A command has no request.
        languages = request.headers.get("Accept-Language", "")[:_MAX_LANGUAGES] if request else ""
        variables = {"languages": languages, "user_agent": g.client["user_agent"]}
        if self._link_lifetime and self._code_lifetime not in (None, self._link_lifetime):
            variables["code_lifetime"] = self._code_lifetime
        sealed = latchkey.sealer.seal_json(secrets, self.id) if secrets else None
        queries.write_message(
            tx,
            message_id=self.id,
            user_id=user_id,
            kind=kind,
            recipient=self._address,
            message_variables=variables | others,
            message_secret=sealed if secret else None,
            token_id=self._token_id if secret else None,
            lifetime=self._link_lifetime or self._code_lifetime,
            longest_delay=_LONGEST_DELAY if g.actor == "anonymous" else 0,
        )


def notify(tx: Transaction, user_id: str, email: str, kind: str, **others: Any) -> None:
    """Write an email without a link or code. `others` are variables of its template."""
    Message(email, link=False, code=False).write(tx, user_id, kind, **others)


def tell(tx: Transaction, user: Any, kind: str, **others: Any) -> None:
    """Write the notice of a change, with the link *This wasn't me*, to the previous address.

    `user` is the row from before the change; `others` are variables of the template.
    """
    target = notice_address(user)
    if target is None:
        return
    message = Message(target, code=False, lifetime=one_time.UNDO_LIFETIME, sms_link=True)
    message.write_undo_token(tx, user.id)
    message.write(tx, user.id, kind, **others)


def tell_of_identity(tx: Transaction, user: Any, kind: str, provider: str) -> None:
    """Write the notice of a linked or unlinked identity, without a link if the user's email is not proved."""
    if notice_address(user):
        tell(tx, user, kind, provider=provider)
    elif user.email:
        notify(tx, user.id, user.email, kind, provider=provider)


def notice_address(user: Any) -> str | None:
    """Return the proved address to which notices with a link go, if any."""
    if user.email_proved:
        return user.email
    return user.phone if user.phone_proved and latchkey.settings.offers_phone else None


def count(tx: Transaction, address: str, windows: Windows | None = None) -> "queries.TakeFromQuota":
    """Count a message to an address in its windows, unless others are named, and return the row of
    `take_from_quota`.
    """
    windows = _windows(tx, address) if windows is None else windows
    windows = windows if latchkey.settings.rate_limits_enabled else []
    row = queries.take_from_quota(
        tx,
        quota_keys=[counts.key(key, limit) for key, limit in windows],
        quota_amounts=[limit.amount for _, limit in windows],
        quota_seconds=[limit.get_expiry() for _, limit in windows],
    )
    if row.seconds_left:
        _over_quota.count(reason=_OVER_QUOTA)
        if latchkey.settings.dev_inbox:
            dev_inbox.keep_unsent(tx, latchkey.sealer, new_id(), address, _OVER_QUOTA)
    return row


def seconds_to_wait(address: str) -> float:
    """Return when this network may request the next message to an address.

    Other limits would tell who else requests them, and whether a user has this phone.
    """
    windows = _windows_here(address) if latchkey.settings.rate_limits_enabled else []
    keys = [counts.key(key, limit) for key, limit in windows]
    amounts = [limit.amount for _, limit in windows]
    return queries.select_wait(latchkey.db, quota_keys=keys, quota_amounts=amounts).seconds


def too_early(address: str, seconds: float) -> ApiError:
    is_mail = addresses.is_email(address)
    return refusal("over_email_send_rate_limit" if is_mail else "over_sms_send_rate_limit", seconds)


def take_quota(tx: Transaction, address: str, windows: Windows | None = None) -> "queries.TakeFromQuota":
    """Count a message like `count`. Raises `ApiError` if none is left."""
    row = count(tx, address, windows)
    if row.seconds_left and row.amount is not None:
        note(Window(row.amount, 0, row.seconds_left))
        raise too_early(address, row.seconds_left)
    return row


def _windows_here(address: str) -> Windows:
    network = g.client["network"]
    return [(f"message {address} {network}", limit) for limit in latchkey.settings.rate_limit_messages]


def _windows(tx: Transaction, address: str) -> Windows:
    settings, network = latchkey.settings, g.client["network"]
    windows = [*_windows_here(address)]
    windows += [(f"message {address}", limit) for limit in settings.rate_limit_messages_per_recipient]
    if addresses.is_email(address):
        return windows
    total = settings.rate_limit_sms_total
    # The same number of windows for a known number, so that it takes as long.
    known = queries.select_user_of_address(tx, address=address)
    if known and known.phone_proved:
        return [*windows, (f"sms_known {network}", total), ("sms_known", total), ("sms", total)]
    per_network, share = settings.rate_limit_sms_new_numbers, counts.share_of_new_numbers(total)
    return [*windows, (f"sms_new {network}", per_network), ("sms_new", share), ("sms", total)]


def note_quota(row: Any) -> None:
    """Add the rate-limit headers of a counted message to the response."""
    if row.amount is not None:
        note(Window(row.amount, row.remaining, row.resets_in))
