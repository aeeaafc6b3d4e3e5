"""The current counts of wrong passwords, wrong codes and messages, in words for operators."""

from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from limits import RateLimitItem

from auth.settings import Settings
from sql import Database

# The limit in the SQL function spend_code.
_WRONG_CODES_A_DAY = 20
_USED_UP = {
    "passwords": ": more are refused",
    "codes": ": more are refused, links are not",
    "messages": ": more are not sent",
    "invitations": ": more are refused",
}


@dataclass(frozen=True)
class Count:
    """One window. `address` and `network` are None when it counts all of them."""

    text: str
    what: str
    address: str | None
    network: str | None
    count: int
    amount: int
    until: str
    is_used_up: bool


def against(settings: Settings, db: Database, addresses: Sequence[str]) -> list[dict[str, Any]]:
    """Return the counts that concern some addresses: of passwords and codes all, of messages those used up."""
    # Whole keys, as the keys of invitations to one address begin with that of all.
    totals = [key("sms", settings.rate_limit_sms_total), key("invite", settings.rate_limit_invite)]
    rows = db.all("select_failure_counts", addresses=list(addresses), totals=totals)
    counts = [count for count in (_count(settings, row) for row in rows) if count]
    return [
        asdict(count)
        for count in counts
        if count.is_used_up or (count.count and count.what in ("passwords", "codes"))
    ]


def key(prefix: str, limit: RateLimitItem) -> str:
    """Return the key that counts messages for a limit."""
    return f"{prefix} {limit.get_expiry()}"


def _count(settings: Settings, row: Any) -> Count | None:
    """Return the count of a row; None if no limit of this deployment has the length of its window."""
    prefix, *parts = row.key.split(" ")
    seconds = int(parts.pop()) if prefix in ("message", "invite", "sms") else None
    address, network = [*parts, None, None][:2]
    what, told, limits = {
        "login": ("passwords", "wrong passwords", [settings.rate_limit_login_failures]),
        "account": ("passwords", "wrong passwords", [settings.rate_limit_account_failures]),
        "code": ("codes", "wrong codes", []),
        "message": (
            "messages",
            "messages",
            settings.rate_limit_messages if network else settings.rate_limit_messages_per_recipient,
        ),
        "invite": (
            "invitations",
            "invitations",
            [settings.rate_limit_invite_per_address if address else settings.rate_limit_invite],
        ),
        "sms": ("messages", "SMS", [settings.rate_limit_sms_total]),
    }[prefix]
    amount = _amount(limits, seconds) if settings.rate_limits_enabled else None
    if prefix == "code":
        amount = _WRONG_CODES_A_DAY  # counted even without rate limits
    if amount is None:
        return None
    is_used_up = row.count >= amount
    count = min(row.count, amount)
    text = f"{count} of {amount} {told}"
    text += f" for {address}" if address else " in all"
    if network:
        text += f" from {network}"
    elif prefix == "account":
        text += ", from networks that its user has never signed in from"
    day, minute = row.until[:10], row.until[11:16]  # of "2026-01-02T03:04:05.678901Z"
    text += f", until {day} {minute}" + (_USED_UP[what] if is_used_up else "")
    return Count(text, what, address, network, count, amount, row.until, is_used_up)


def _amount(limits: Iterable[RateLimitItem], seconds: int | None) -> int | None:
    return next((limit.amount for limit in limits if seconds in (None, limit.get_expiry())), None)
