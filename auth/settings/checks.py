"""Checks of settings. Each raises `ValueError`, whose message does not quote the value."""

import re
from collections.abc import Callable
from pathlib import Path

import limits
from marshmallow import ValidationError

from auth.net import redirects
from auth.settings import targets
from auth.tokens import access_tokens

Check = Callable[[str], object]


def validator(*checks: Callable) -> Callable[[object], None]:
    """Return a validator for environs, which runs the checks until one fails."""

    def validate(value: object) -> None:
        try:
            for check in checks:
                check(value)
        except ValueError as error:
            raise ValidationError(sentence(error)) from None

    return validate


def sentence(error: Exception) -> str:
    text = str(error)
    return f"{text[0].upper()}{text[1:]}."


def optional(check: Check) -> Check:
    return lambda value: check(value) if value else None


def at_least_32_characters(value: str) -> None:
    if len(value) < 32:
        raise ValueError("must be at least 32 characters")


def at_least_32_bytes(value: str) -> None:
    if len(value.encode()) < 32:  # HS256: RFC 7518, section 3.2
        raise ValueError("must be at least 32 bytes")


def postgres_url(value: str) -> None:
    if not value.startswith(("postgresql://", "postgres://")):
        raise ValueError("must be a URL such as postgresql://user:password@host/database")


def public_url(value: str) -> None:
    problem = "must be an http or https URL without user, query and fragment"
    if targets.split_http_url(value, problem).query:
        raise ValueError(problem)


def redirect_pattern(value: str) -> None:
    try:
        redirects.parse_pattern(value)
    except redirects.InvalidUrl as error:
        raise ValueError(f"must be URLs or patterns: {error}") from None


def origin(value: str) -> None:
    # Flask-CORS would take a pattern for an unanchored regular expression.
    if value != "*" and not re.fullmatch(r"[a-z][a-z0-9+.-]*://[a-z0-9.-]+(:[0-9]+)?", value):
        raise ValueError("must be * or origins such as https://app.example.com")


def jwk_set(value: str) -> None:
    try:
        access_tokens.parse_jwk_set(value)
    except (ValueError, OSError) as error:
        raise ValueError(
            "must be a JWK Set with private ES256, EdDSA or RS256 keys, or the path of a file that holds one"
            f" ({error})"
        ) from None


def rate_limits(value: str) -> None:
    if not _count_limits(value):
        raise ValueError("must be rate limits such as 1 per minute; 5 per hour")


def rate_limit(value: str) -> None:
    if _count_limits(value) != 1:
        raise ValueError("must be a rate limit such as 30 per 5 minutes")


def _count_limits(value: str) -> int:
    """Return 0 if one of the limits is wrong."""
    try:
        parsed = limits.parse_many(value)
    except ValueError:
        return 0
    return len(parsed) if all(limit.amount > 0 for limit in parsed) else 0


def rate_limit_storage(value: str) -> None:
    if not re.fullmatch(r"postgresql|memory://|rediss?://.+", value):
        raise ValueError("must be postgresql, memory:// or redis://…")


def smtp_url(value: str) -> None:
    if value != targets.CONSOLE:
        targets.smtp_server(value)


def folder(value: str) -> None:
    if not Path(value).is_dir():
        raise ValueError("must be a folder")


def country_prefix(value: str) -> None:
    if not re.fullmatch(r"\+[1-9][0-9]{0,6}", value):
        raise ValueError("must be prefixes of phone numbers such as +1,+49")


def twilio_id(value: str) -> None:
    if not re.fullmatch(r"[A-Za-z0-9]+", value):
        raise ValueError("must be an id of letters and digits")
