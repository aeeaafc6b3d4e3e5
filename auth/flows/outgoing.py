"""Outgoing mail and SMS: the link and the code that a message carries, its rows, and its quota."""

import uuid
from collections.abc import Mapping, Sequence
from typing import Any
from urllib.parse import urlencode

from flask import g, request
from limits import RateLimitItem

from auth.context import latchkey
from auth.tokens import one_time
from auth.tokens.sealed import seal_json
from auth.web import counts
from auth.web.errors import ApiError
from auth.web.limits import Window, note, refusal
from sql import Transaction

_MAX_LANGUAGES = 200


def new_id() -> str:
    """Return the id of a new row."""
    return str(uuid.uuid4())


def own_url(path: str, parameters: Mapping[str, str]) -> str:
    """Return a URL of this service."""
    return f"{latchkey.settings.base_url}/{path}?{urlencode(parameters)}"


class Message:
    """A mail or an SMS, with the link and the code that it carries. A phone is never sent a link."""

    def __init__(
        self,
        address: str,
        *,
        link: bool = True,
        code: bool = True,
        link_lifetime: int = one_time.LINK_LIFETIME,
    ) -> None:
        is_phone = address.startswith("+")
        self.id = new_id()
        self.link = one_time.new_token() if link and not is_phone else None
        self.code = one_time.new_code() if code else None
        self._address = address
        self._token_id = new_id() if self.link or self.code else None
        self._link_lifetime = link_lifetime if self.link else None
        self._code_lifetime = (
            (one_time.SMS_CODE_LIFETIME if is_phone else one_time.MAIL_CODE_LIFETIME) if self.code else None
        )

    def token_row(
        self,
        user_id: str | None,
        purpose: str,
        *,
        redirect_to: str | None = None,
        code_challenge: str | None = None,
        session_id: str | None = None,
        password_hash: str | None = None,
    ) -> dict[str, Any]:
        """Return the parameters of `write_token`, which does nothing without a `user_id`."""
        return {
            "token_id": self._token_id,
            "user_id": user_id,
            "purpose": purpose,
            "target": self._address,
            "token_hash": one_time.hash_token(self.link) if self.link else None,
            "link_lifetime": self._link_lifetime,
            "code_mac": latchkey.codes.mac(self._address, self.code) if self.code else None,
            "code_lifetime": self._code_lifetime,
            "redirect_to": redirect_to,
            "code_challenge": code_challenge,
            "session_id": session_id,
            "password_hash": password_hash,
        }

    def message_row(self, user_id: str | None, kind: str, **others: str | None) -> dict[str, Any]:
        """Return the parameters of `write_message`; `others` are further variables of its template."""
        secrets = {name: secret for name, secret in (("token", self.link), ("code", self.code)) if secret}
        return {
            "message_id": self.id,
            "user_id": user_id,
            "kind": kind,
            "recipient": self._address,
            "message_variables": _variables(**others),
            "message_secret": seal_json(latchkey.sealer, secrets, self.id) if secrets else None,
            "token_id": self._token_id,
            "lifetime": self._link_lifetime or self._code_lifetime,
        }


def _variables(**others: str | None) -> dict[str, str | None]:
    """Return the variables of a message's template: what it says about the request, and `others`."""
    languages = request.headers.get("Accept-Language", "")[:_MAX_LANGUAGES]
    return {"languages": languages, "user_agent": g.client["user_agent"]} | others


def quota(address: str) -> dict[str, list[Any]]:
    """Return the rate-limit windows of a message to an address, as parameters of `take_from_quota`."""
    settings = latchkey.settings
    windows: list[tuple[str, RateLimitItem]] = []
    if settings.rate_limits_enabled:
        windows += [
            (f"message {address} {g.client['network']}", limit) for limit in settings.rate_limit_messages
        ]
        windows += [(f"message {address}", limit) for limit in settings.rate_limit_messages_per_recipient]
        if address.startswith("+"):
            windows.append(("sms", settings.rate_limit_sms_total))
    return as_parameters(windows)


def as_parameters(windows: Sequence[tuple[str, RateLimitItem]]) -> dict[str, list[Any]]:
    """Return rate-limit windows as parameters of `take_from_quota`."""
    return {
        "quota_keys": [counts.key(key, limit) for key, limit in windows],
        "quota_amounts": [limit.amount for _, limit in windows],
        "quota_seconds": [limit.get_expiry() for _, limit in windows],
    }


def take_quota(tx: Transaction, quota: Mapping[str, Any], error_code: str) -> Any:
    """Count a message and return the row of `take_from_quota`. Raises `ApiError` when no more are allowed."""
    row = tx.one("take_from_quota", **quota)
    if row.seconds_left:
        note(Window(row.amount, 0, row.seconds_left))
        raise refusal(error_code, row.seconds_left)
    return row


def note_quota(row: Any) -> None:
    """Add rate-limit headers for a message that was counted to the response."""
    if row.amount is not None:
        note(Window(row.amount, row.remaining, row.resets_in))


def check_channel(email: str | None, phone: str | None, *, doing: str = "Sign-in") -> None:
    """Refuse an address of a disabled kind, or a phone outside `AUTH_SMS_COUNTRIES`. Raises `ApiError`."""
    check_enabled(email, phone, doing=doing)
    if phone:
        _check_country(phone)


def check_enabled(email: str | None, phone: str | None, *, doing: str = "Sign-in") -> None:
    """Refuse an address of a disabled kind. Raises `ApiError`."""
    if email and not latchkey.settings.email_enabled:
        raise ApiError("email_provider_disabled", doing=doing)
    if phone and not latchkey.settings.phone_enabled:
        raise ApiError("phone_provider_disabled", doing=doing)


def _check_country(phone: str) -> None:
    countries = latchkey.settings.sms_countries
    if countries and not phone.startswith(tuple(countries)):
        raise ApiError("country.validation_failed", f"phone: must begin with {', '.join(countries)}")
