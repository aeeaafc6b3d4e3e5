"""Counts of wrong passwords, wrong codes and messages per address, for administrators."""

from collections.abc import Sequence
from typing import Any

from limits import RateLimitItem

from auth.core import promises
from auth.core.settings import Settings
from sql import Database, queries

KINDS = {
    "login": ("passwords", "wrong passwords"),
    "account": ("passwords", "wrong passwords"),
    "user": ("passwords", "wrong passwords"),
    "code": ("codes", "wrong codes"),
    "totp": ("factors", "wrong authenticator codes"),
    "recovery": ("factors", "wrong recovery codes"),
    "device": ("devices", "wrong codes of devices"),
    "message": ("messages", "messages"),
    "invite": ("invitations", "invitations"),
    "mail": ("messages", "emails"),
    "sms": ("messages", "SMS"),
}
_USED_UP = {
    "passwords": "; further attempts are refused",
    "codes": "; further codes are refused, links still work",
    "factors": "; further codes are refused",
    "devices": "; further ones are refused",
    "messages": "; no more are sent",
    "invitations": "; further ones are refused",
    "strangers": "; no more are sent to addresses that nobody has proved",
}


def against(settings: Settings, db: Database, subjects: Sequence[str]) -> list[dict[str, Any]]:
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
    amounts = dict(promises.WRONG_CODES_A_DAY)
    if not settings.rate_limits_enabled:
        return {"network": amounts, "elsewhere": amounts}
    failures, of_account = settings.rate_limit_login_failures, settings.rate_limit_account_failures
    return {
        "network": amounts | dict.fromkeys(("login", "user"), failures.amount),
        "elsewhere": amounts | dict.fromkeys(("account", "user"), of_account.amount),
    }


def window(
    kind: str, limit: RateLimitItem, subject: str | None = None, network: str | None = None
) -> dict[str, Any]:
    """Return a `failure_limit` of SQL."""
    name = {"kind": kind, "subject": subject, "network": network}
    return name | {"amount": limit.amount, "seconds": limit.get_expiry()}


def _count(settings: Settings, row: "queries.SelectFailureCounts") -> dict[str, Any] | None:
    amount = _amount(settings, row) if row.kind in KINDS else None
    if amount is None:
        return None
    what, noun = KINDS[row.kind]
    # Beyond three quarters of the SMS total, unproved numbers get none.
    is_used_up = row.count >= (max(1, amount * 3 // 4) if row.kind == "sms" else amount)
    count = min(row.count, amount)
    is_of_factors = what in ("factors", "devices")
    is_of_user = row.kind == "user" or is_of_factors
    subject = "for any of the user's addresses" if is_of_user else f"for {row.subject}"
    text = f"{count} of {amount} {noun}" + (
        "" if is_of_factors else f" {subject if row.subject else 'in total'}"
    )
    if row.network:
        text += f" from {row.network}"
    elif row.kind in ("account", "user", "code"):
        text += ", from networks that are not known"
    elif is_of_factors:
        text += ", from networks where the user has neither passed the second step nor used an emailed link"
    # "2026-01-02T03:04:05.678901Z"
    text += f", until {row.until[:10]} {row.until[11:16]}"
    if is_used_up:
        is_for_strangers = row.kind == "mail" or (row.kind == "sms" and count < amount)
        text += _USED_UP["strangers" if is_for_strangers else what]
    return {
        "text": text,
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
    known = locks(settings)["network" if row.network else "elsewhere"]
    if row.kind in known or not settings.rate_limits_enabled:
        return known.get(row.kind)
    limits: Sequence[RateLimitItem] = {
        "message": settings.rate_limit_messages
        if row.network
        else settings.rate_limit_messages_per_recipient,
        "invite": [settings.rate_limit_invite_per_address if row.subject else settings.rate_limit_invite],
        "mail": [settings.rate_limit_mail_total],
        "sms": [settings.rate_limit_sms_total],
    }.get(row.kind, [])
    return next((limit.amount for limit in limits if row.seconds == limit.get_expiry()), None)
