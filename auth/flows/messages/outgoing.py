"""Outgoing email and SMS: the link and the code of a message, its rows, its quota, and notices of changes."""

import json
import uuid
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any, Literal, TypedDict, Unpack, cast
from urllib.parse import urlencode

from limits import RateLimitItem

from auth.core import addresses, constants
from auth.core.json_bodies import JsonObject
from auth.core.logs import ThrottledLog
from auth.core.net import networks
from auth.core.settings import Settings
from auth.core.tokens import one_time
from auth.flows.facts import PersonFacts
from auth.rules.messages import Channel, address_of_notices, is_beyond_tenth, what_stops_message
from auth.web.asked import Asked
from auth.web.errors import ApiError
from auth.web.limits import LimitWindow, refusal
from sql import Transaction, queries

_not_sent = ThrottledLog("message_not_sent")
# The setting of a window, by its kind, and whether it counts for a recipient and a network.
_SETTINGS_OF_WINDOWS = {
    ("message", True, True): "AUTH_RATE_LIMIT_MESSAGES",
    ("message", True, False): "AUTH_RATE_LIMIT_MESSAGES_PER_RECIPIENT",
    ("invite", True, False): "AUTH_RATE_LIMIT_INVITE_PER_ADDRESS",
    ("invite", False, False): "AUTH_RATE_LIMIT_INVITE",
    ("member_invite", True, False): "AUTH_RATE_LIMIT_INVITE_PER_ADDRESS",
}
_UNITS = {60: "minute", 3600: "hour", 86_400: "day"}
# In seconds: the cost of a stranger's message must not slow down the requests after it.
_LONGEST_DELAY = 0.75

Windows = Sequence[dict[str, Any]]


class TokenColumns(TypedDict, total=False):
    """Further columns of a link or code."""

    redirect_to: str | None
    code_challenge: str | None
    session_id: str | None
    password_hash: str | None
    user_metadata: JsonObject | None
    user_agent: str | None
    browser_hash: bytes | memoryview | None
    ip: str | None
    # Whether an administrative key, or a session of one, has asked for it.
    by_key: bool | None


NO_COLUMNS = cast(TokenColumns, dict.fromkeys(TokenColumns.__annotations__))


def window(
    kind: str, limit: RateLimitItem, subject: str | None = None, network: str | None = None
) -> dict[str, Any]:
    """Return a `failure_limit` of SQL."""
    name = {"kind": kind, "subject": subject, "network": network}
    return name | {"amount": limit.amount, "seconds": limit.get_expiry()}


def windows_of_operators(asked: Asked, email: str) -> Windows:
    """Return the windows of an operator's invitation.

    That of the address comes first: an invitation that it refuses must not count for the service.
    """
    settings = asked.settings
    return [
        window("invite", settings.rate_limit_invite_per_address, email),
        window("invite", settings.rate_limit_invite),
    ]


def own_url(settings: Settings, path: str, parameters: Mapping[str, str]) -> str:
    url = f"{settings.base_url}/{path}"
    return f"{url}?{urlencode(parameters)}" if parameters else url


class Message:
    """An email or SMS with what it `carries`. An SMS has no link unless it is a notice."""

    def __init__(
        self,
        asked: Asked,
        address: str,
        *,
        carries: Collection[Literal["link", "code"]] = ("link", "code"),
        lifetime: int = constants.LINK_LIFETIME,
        is_notice: bool = False,
        channel: str | None = None,
    ) -> None:
        is_mail = addresses.is_email(address)
        code_lifetime = constants.MAIL_CODE_LIFETIME if is_mail else constants.SMS_CODE_LIFETIME
        self.id = str(uuid.uuid4())
        self.link = one_time.new_token() if "link" in carries and (is_mail or is_notice) else None
        self.code = one_time.code_of(self.link or one_time.new_token()) if "code" in carries else None
        self._asked, self._address = asked, address
        self._is_notice, self._channel = is_notice, channel
        self._token_id = str(uuid.uuid4()) if self.link or self.code else None
        self._link_lifetime = lifetime if self.link else None
        self._code_lifetime = code_lifetime if self.code else None
        self._has_token = False

    def write_token(
        self, tx: Transaction, user_id: str | None, purpose: str, **others: Unpack[TokenColumns]
    ) -> None:
        """Write link and code as one row; none without a `user_id`."""
        self._has_token = user_id is not None
        if self.code and others.get("browser_hash"):
            self._code_lifetime = constants.PAGE_CODE_LIFETIME
        queries.write_token(
            tx,
            token_id=self._token_id,
            user_id=user_id,
            purpose=purpose,
            target=self._address,
            token_hash=one_time.hash_token(self.link) if self.link else None,
            link_lifetime=self._link_lifetime,
            code_mac=self._asked.parts.codes.macs(self._address, self.code)[0] if self.code else None,
            code_lifetime=self._code_lifetime,
            **NO_COLUMNS | others,
        )

    def write(self, tx: Transaction, user_id: str | None, kind: str, **others: object) -> None:
        """Write the message, with link and code if written. `others` are variables of its template."""
        secrets = {name: value for name, value in {"token": self.link, "code": self.code}.items() if value}
        variables = {"languages": self._asked.languages, "user_agent": self._asked.client["user_agent"]}
        if self._link_lifetime and self._code_lifetime not in (None, self._link_lifetime):
            variables["code_lifetime"] = self._code_lifetime
        if self._channel:
            variables["channel"] = self._channel
        if self._asked.noted.refused_target and self._asked.settings.dev_inbox:
            variables["refused_target"] = self._asked.noted.refused_target
        sealed = self._asked.parts.sealer.seal_json(secrets, self.id) if secrets else None
        queries.write_message(
            tx,
            message_id=self.id,
            user_id=user_id,
            kind=kind,
            recipient=self._address if kind != "none" else None,
            message_variables=variables | others,
            message_secret=sealed if self._has_token else None,
            token_id=self._token_id if self._has_token else None,
            lifetime=self._link_lifetime or self._code_lifetime,
            longest_delay=_LONGEST_DELAY if self._asked.actor == "anonymous" else 0,
            is_notice=self._is_notice,
        )


def notify(asked: Asked, tx: Transaction, user: PersonFacts, kind: str, **others: object) -> None:
    """Notify a user of a change, with the link *This wasn't me*. The row is from before the change.

    The notice goes to the proved address. `others` are variables of the template.
    """
    if target := _target_of_notice(asked, tx, user, kind, others):
        message = Message(asked, target, carries=["link"], lifetime=constants.UNDO_LIFETIME, is_notice=True)
        message.write_token(tx, user.id, "undo")
        message.write(tx, user.id, kind, **others)


def notify_without_link(
    asked: Asked, tx: Transaction, user: PersonFacts, kind: str, **others: object
) -> None:
    """Notify a user of a change, like `notify`, without the link."""
    if target := _target_of_notice(asked, tx, user, kind, others):
        message = Message(asked, target, carries=[], is_notice=True)
        message.write(tx, user.id, kind, **others)


def _target_of_notice(
    asked: Asked, tx: Transaction, user: PersonFacts, kind: str, others: Mapping[str, object]
) -> str | None:
    """Return where a notice goes, unless it was added to one that waits, which has the link of its first."""
    target = address_of_notices(user, offers_phone=asked.settings.offers_phone)
    change = {**others, "user_agent": asked.client["user_agent"]}
    if target and queries.join_notice(tx, user_id=user.id, kind=kind, recipient=target, change=change):
        return None
    return target


@dataclass(frozen=True)
class Counted:
    """What stops a message, and for how long; and the tightest window of its recipient."""

    refused_by: Literal["tenth", "total", "recipient"] | None = None
    seconds_left: float = 0
    amount: int | None = None
    remaining: int = 0
    resets_in: float = 0
    # The tightest window, if it stops the message.
    window: Mapping[str, Any] = field(default_factory=dict)

    @property
    def is_stopped_by_others(self) -> bool:
        """Whether a window stops the message that counts requests of every network for this recipient."""
        return self.refused_by == "recipient" and not self.window["network"]


def count(asked: Asked, address: str, windows: Windows = (), *, is_new: bool = False) -> Counted:
    """Count a request for a message, and return the refusal, if any. Call it outside a transaction."""
    # A transaction would keep the total locked. `windows` replace those of the recipient; a recipient that
    # `is_new` counts as unproved.
    settings = asked.settings
    if not settings.rate_limits_enabled:
        return Counted()
    site = None if asked.actor == "service_role" else networks.site_of(asked.client["network"])
    if not windows:
        windows = [*_windows_here(asked, address)]
        per_recipient = settings.rate_limit_messages_per_recipient
        windows += [window("message", limit, address) for limit in per_recipient]
    channel: Channel = "mail" if addresses.is_email(address) else "sms"
    total = settings.rate_limit_mail_total if channel == "mail" else settings.rate_limit_sms_total
    most, seconds = total.amount, total.get_expiry()
    asking = {"address": None if is_new else address, "windows": json.dumps(windows), "site": site}
    # All messages of a channel lock its total. A crash loses no count of a message that was written after it.
    db = asked.db.asynchronous
    own = queries.count_message(db, **asking, channel=channel, seconds=seconds)
    is_proved, left = own.is_proved, own.remaining
    is_beyond = is_beyond_tenth(own.of_network, most, is_proved=is_proved, recipient_left=left)
    # Beyond its tenth, a network must not use up the total. Another window counts instead, so that all
    # requests take equally long.
    kind = f"{channel}_over" if is_beyond else channel
    overall = queries.count_in_total(db, kind=kind, seconds=seconds)
    refused_by = what_stops_message(
        channel, overall.count, most, is_beyond=is_beyond, is_proved=is_proved, recipient_left=left
    )
    waits = {"tenth": own.seconds_left, "total": overall.seconds_left, "recipient": own.resets_in}
    wait = waits[refused_by] if refused_by else None
    # If several windows have this amount, it is the last one, which the most messages share.
    used = [each for each in windows if refused_by == "recipient" and each["amount"] == own.amount]
    tightest = used[-1] if used else {}
    counted = Counted(refused_by, wait or 0, own.amount, max(0, left or 0), own.resets_in or 0, tightest)
    if refused_by:
        reason = _reason(counted, total, channel.upper())
        _not_sent.count(reason=reason)
        tell_developer(asked, address, reason)
    return counted


def _reason(row: Counted, total: RateLimitItem, channel: str) -> str:
    """Return why a message is not sent: the limit, its setting, and when the next message may be sent."""
    amount, seconds, setting = total.amount, total.get_expiry(), f"AUTH_RATE_LIMIT_{channel}_TOTAL"
    if used := row.window:
        amount, seconds = used["amount"], used["seconds"]
        of = (used["kind"], used["subject"] is not None, used["network"] is not None)
        setting = _SETTINGS_OF_WINDOWS[of]
    whose = "this network's tenth of " if row.refused_by == "tenth" else ""
    moment = datetime.now(UTC) + timedelta(seconds=row.seconds_left)
    limit = f"{amount} per {_UNITS.get(seconds, f'{seconds} seconds')}"
    return f"not sent: {whose}{limit} ({setting}); the next at {moment:%H:%M:%S} UTC"


def tell_developer(asked: Asked, address: str, reason: str) -> None:
    """Print why a message is not sent, if messages are printed or kept in the development inbox."""
    settings = asked.settings
    sender = settings.smtp_url if addresses.is_email(address) else settings.sms_provider
    if sender == "console" or settings.dev_inbox or (sender is None and settings.is_local):
        print(f"To {address}: {reason}", flush=True)


def take_quota(asked: Asked, address: str, windows: Windows = (), *, is_new: bool = False) -> Counted:
    """Count like `count`. Refuse what it refuses."""
    row = count(asked, address, windows, is_new=is_new)
    if row.refused_by:
        raise error_of(asked, address, row, is_invitation=bool(windows))
    return row


def admit(asked: Asked, address: str, windows: Windows = ()) -> Counted:
    """Count like `count`, as if the address were new. What it counts as refused must not be sent.

    Refuse what `count` refuses, unless the requests of other people have used up the recipient's window: a
    refusal would tell of them, and a stranger could keep everybody else from the act.
    """
    row = count(asked, address, windows, is_new=True)
    if row.refused_by and not row.is_stopped_by_others:
        raise error_of(asked, address, row, is_invitation=bool(windows))
    return row


def error_of(asked: Asked, address: str, row: Counted, *, is_invitation: bool = False) -> ApiError:
    """Return the error for a message that is not sent."""
    if row.refused_by == "total" and asked.actor in ("anonymous", "user"):
        return refusal("messages.service_unavailable", row.seconds_left)
    if row.refused_by == "recipient":
        asked.noted.add_window(LimitWindow(row.amount or 0, 0, row.seconds_left))
    if row.window.get("kind") == "invite" and row.window["subject"]:
        return refusal("invited.over_email_send_rate_limit", row.seconds_left)
    if is_invitation:
        return refusal("invitations.over_email_send_rate_limit", row.seconds_left)
    return too_early(address, row.seconds_left)


def seconds_to_wait(asked: Asked, address: str) -> float:
    """Return when this network may request the next message to an address.

    Other limits would reveal requests of other people, and whether a user has this phone.
    """
    windows = _windows_here(asked, address) if asked.settings.rate_limits_enabled else []
    return queries.select_wait(asked.db, windows=json.dumps(windows)).seconds


def too_early(address: str, seconds: float) -> ApiError:
    is_mail = addresses.is_email(address)
    return refusal("over_email_send_rate_limit" if is_mail else "over_sms_send_rate_limit", seconds)


def _windows_here(asked: Asked, address: str) -> Windows:
    limits, network = asked.settings.rate_limit_messages, asked.client["network"]
    return [window("message", limit, address, network) for limit in limits]


def add_quota_headers(asked: Asked, row: Counted) -> None:
    """Add the rate-limit headers of a counted message to the response."""
    if row.amount is not None:
        asked.noted.add_window(LimitWindow(row.amount, row.remaining, row.resets_in))
