"""Counts of wrong passwords, wrong codes and messages per address, for administrators."""

from collections.abc import Sequence
from typing import TypedDict

from limits import RateLimitItem

from auth.core import constants
from auth.core.settings import Settings
from auth.core.text.labels import label
from auth.core.text.moments import minute
from sql import Database, queries

# What a kind of count limits.
KINDS = {
    "login": "passwords",
    "account": "passwords",
    "user": "passwords",
    "code": "codes",
    "totp": "factors",
    "recovery": "factors",
    "device": "devices",
    "message": "messages",
    "invite": "invitations",
    "member_invite": "invitations",
    "mail": "messages",
    "sms": "messages",
}


class Count(TypedDict):
    """`what` is a value of `KINDS`; `text` says all of it, for administrators."""

    text: str
    what: str
    address: str | None
    network: str | None
    count: int
    amount: int
    until: str
    is_used_up: bool


def against(settings: Settings, db: Database, subjects: Sequence[str]) -> list[Count]:
    """Return the counts of wrong passwords and codes for addresses, and the used-up limits of messages.

    `subjects` are addresses, and perhaps the id of a user, whose wrong passwords are also counted in total.
    """
    rows = queries.select_failure_counts(db, subjects=list(subjects))
    counts = [count for count in (_count(settings, row) for row in rows) if count]
    return [
        count
        for count in counts
        if count["is_used_up"]
        or (count["count"] and count["address"] and count["what"] in ("passwords", "codes"))
        or (count["count"] and count["what"] in ("factors", "devices"))
    ]


def locks(settings: Settings) -> dict[str, dict[str, int]]:
    """Return the wrong passwords and codes that lock a user, by kind: for one network, and for all others."""
    amounts = dict(constants.WRONG_CODES_A_DAY)
    if not settings.rate_limits_enabled:
        return {"network": amounts, "elsewhere": amounts}
    failures, of_account = settings.rate_limit_login_failures, settings.rate_limit_account_failures
    return {
        "network": amounts | dict.fromkeys(("login", "user"), failures.amount),
        "elsewhere": amounts | dict.fromkeys(("account", "user"), of_account.amount),
    }


def _count(settings: Settings, row: "queries.SelectFailureCounts") -> Count | None:
    amount = _amount(settings, row) if row.kind in KINDS else None
    if amount is None:
        return None
    what, count = KINDS[row.kind], min(row.count, amount)
    # Beyond three quarters of the SMS total, unproved numbers get none.
    is_used_up = row.count >= (max(1, amount * 3 // 4) if row.kind == "sms" else amount)
    is_of_user = row.kind == "user" or what in ("factors", "devices")
    is_for_strangers = row.kind == "mail" or (row.kind == "sms" and count < amount)
    numbers = {"count": str(count), "amount": str(amount), "subject": row.subject or ""}
    return {
        "text": label(
            "limits",
            "sentence",
            counted=label("counts", row.kind, **numbers),
            network=row.network or "",
            elsewhere="" if what in ("messages", "invitations") else label("elsewhere", what),
            until=minute(row.until),
            then=label("used_up", "strangers" if is_for_strangers else what) if is_used_up else "",
        ),
        "what": what,
        "address": None if is_of_user else row.subject,
        "network": row.network,
        "count": count,
        "amount": amount,
        "until": row.until,
        "is_used_up": is_used_up,
    }


def _amount(settings: Settings, row: "queries.SelectFailureCounts") -> int | None:
    """Return the amount of a limit, or None for one that is no longer in the settings."""
    amounts = locks(settings)["network" if row.network else "elsewhere"]
    if row.kind in amounts or not settings.rate_limits_enabled:
        return amounts.get(row.kind)
    limits: Sequence[RateLimitItem] = {
        "message": settings.rate_limit_messages
        if row.network
        else settings.rate_limit_messages_per_recipient,
        "invite": [settings.rate_limit_invite_per_address if row.subject else settings.rate_limit_invite],
        "member_invite": [settings.rate_limit_invite_per_address],
        "mail": [settings.rate_limit_mail_total],
        "sms": [settings.rate_limit_sms_total],
    }.get(row.kind, [])
    return next((limit.amount for limit in limits if row.seconds == limit.get_expiry()), None)
