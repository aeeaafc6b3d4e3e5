"""What a setting must be, where the libraries have no word for it. Each check raises `ValidationError`, and
quotes no value.
"""

import re
from collections.abc import Callable
from urllib.parse import urlsplit

import limits
from marshmallow import ValidationError

from auth.tokens import access_tokens

_JWK_SETS = "a JWK Set with private ES256, EdDSA or RS256 keys, or the path of a file that holds one"


def at_least_32_characters(value: str) -> None:
    """Check a secret."""
    if len(value) < 32:
        raise ValidationError("Must be at least 32 characters.")


def at_least_32_bytes(value: str) -> None:
    """Check the secret of HS256 (RFC 7518, section 3.2)."""
    if len(value.encode()) < 32:
        raise ValidationError("Must be at least 32 bytes.")


def postgres_url(value: str) -> None:
    """Check the URL of the database."""
    if value and not value.startswith(("postgresql://", "postgres://")):
        raise ValidationError("Must be a URL such as postgresql://user:password@host/database.")


def http_url(value: str) -> None:
    """Check one of our public addresses."""
    problem = ValidationError("Must be an http or https URL without user, query and fragment.")
    try:
        parts = urlsplit(value)
        _port = parts.port
    except ValueError:
        raise problem from None
    if value and (
        parts.scheme not in ("http", "https")
        or not parts.hostname
        or parts.query
        or parts.fragment
        or parts.username
    ):
        raise problem


def origin(value: str) -> None:
    """Check a web origin. Flask-CORS takes what looks like a pattern for an unanchored regular expression, so
    only whole ones are let in.
    """
    if value != "*" and not re.fullmatch(r"[a-z][a-z0-9+.-]*://[a-z0-9.-]+(:[0-9]+)?", value):
        raise ValidationError("Must be * or origins such as https://app.example.com.")


def jwk_set(value: str) -> None:
    """Check the signing keys."""
    try:
        access_tokens.parse_jwk_set(value)
    except (ValueError, OSError) as error:
        raise ValidationError(f"Must be {_JWK_SETS} ({error}).") from None


def optional(check: Callable[[str], None]) -> Callable[[str], None]:
    """Return a check that also accepts an empty value."""
    return lambda value: check(value) if value else None


def rate_limit(value: str) -> None:
    """Check one limit."""
    try:
        (limit,) = limits.parse_many(value)
        if limit.amount < 1:
            raise ValueError
    except ValueError:
        raise ValidationError("Must be a rate limit such as 30 per 5 minutes.") from None


def rate_limits(value: str) -> None:
    """Check limits that all hold."""
    try:
        if any(limit.amount < 1 for limit in limits.parse_many(value)):
            raise ValueError
    except ValueError:
        raise ValidationError("Must be rate limits such as 1 per minute; 5 per hour.") from None
