"""Checks of settings. Each raises `ValueError`, whose message does not quote the value."""

import re
from collections.abc import Callable
from contextlib import suppress
from ipaddress import ip_address
from pathlib import Path
from typing import Any

import limits
import psycopg2
import pyrage
from environs import Env
from limits import RateLimitItem
from marshmallow import ValidationError
from psycopg2.extensions import parse_dsn

from auth.core import addresses
from auth.core.net import redirects
from auth.core.net.networks import is_loopback
from auth.core.settings.values import urls
from auth.core.tokens import derived_keys, signing_keys
from auth.core.tokens.access_tokens import SECOND_STEP

Check = Callable[[str], object]
# At least eight letters, so that random secrets do not contain them by chance.
_PLACEHOLDER = re.compile(
    r"change.?me|replace.?(me|this)|your.?(secret|own)|super.?secret|placeholder", re.IGNORECASE
)


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


def matching(pattern: str, problem: str) -> Check:
    def check(value: str) -> None:
        if not re.fullmatch(pattern, value):
            raise ValueError(problem)

    return check


origin = matching(
    r"\*|[a-z][a-z0-9+.-]*://[a-z0-9.-]+(:[0-9]+)?", "must be * or origins such as https://app.example.com"
)
rate_limit_storage = matching(
    r"postgresql|memory://|rediss?://.+", "must be postgresql, memory:// or redis://…"
)
sms_provider = matching(
    "none|console|twilio", "must be none, console or twilio. AUTH_HOOK_SEND_SMS took the place of webhook"
)
country_prefix = matching(r"\+[1-9][0-9]{0,6}", "must be prefixes of phone numbers such as +1,+49")
audience = matching(
    rf"(?!{SECOND_STEP}\Z|[0-9a-fA-F-]{{36}}\Z).*",
    f"must not be {SECOND_STEP}, or a UUID, as the ids of applications are",
)
twilio_id = matching(r"[A-Za-z0-9]+", "must be an id of letters and digits")


def flag(env: Env, name: str, default: bool | None) -> bool | None:
    options: dict[str, Any] = {"error_messages": {"invalid": "Must be true or false."}}
    return env.bool(name, default, **options)


def secret(value: str) -> None:
    if len(value) < 32:
        raise ValueError("must be at least 32 characters")
    _random(value)


def timed_secret(value: str) -> None:
    try:
        text, _ = derived_keys.split_time(value)
    except ValueError:
        raise ValueError("must have a time such as 2026-11-22T00:00:00Z after the @") from None
    secret(text)


def jwt_secret(value: str) -> None:
    if len(value.encode()) < 32:  # HS256: RFC 7518, section 3.2
        raise ValueError("must be at least 32 bytes")
    _random(value)


def _random(value: str) -> None:
    """Refuse secrets that were typed, not generated. One of 10^10 generated secrets looks like this."""
    remedy = "generate one, for example with openssl rand -hex 32"
    if len(set(value)) < 8:
        raise ValueError(f"must have at least 8 different characters: {remedy}")
    # A repeated text equals itself when it is shifted by the length of the unit.
    if any(value.startswith(value[unit:]) for unit in range(1, len(value) // 2 + 1)):
        raise ValueError(f"must not repeat itself: {remedy}")
    if _PLACEHOLDER.search(value):
        raise ValueError(f"must not be a placeholder: {remedy}")


def backup_recipient(value: str) -> None:
    try:
        pyrage.x25519.Recipient.from_str(value)
    except pyrage.RecipientError:
        raise ValueError("must be what latchkey backup-key prints, such as age1…") from None


def postgres_url(value: str) -> None:
    example = "must be a URL such as postgresql://user:password@host/database"
    if not value.startswith(("postgresql://", "postgres://")):
        raise ValueError(example)
    try:
        parts = parse_dsn(value)
    except psycopg2.ProgrammingError as error:  # its message quotes the password
        unknown = re.search(r'invalid URI query parameter: "(\w+)"', str(error))
        if unknown and "@" not in value.partition("?")[2]:
            raise ValueError(f"must not have the parameter {unknown[1]}, which libpq does not know") from None
        parts = {"host": "@"}
    # If the password has an @, a slash or a question mark, its end is taken for the host or the database.
    misread = "@" in parts.get("host", "") + parts.get("dbname", "")
    if misread or not re.fullmatch(r"[0-9,]*", parts.get("port", "")):
        raise ValueError(
            f"{example}; percent-encode special characters in the password: %40 for @, %2F for /"
        )


def https_url(value: str) -> None:
    parts = urls.split_http_url(urls.http_url(value), "must be an https URL")
    if parts.scheme == "http" and not is_loopback(parts.hostname or ""):
        raise ValueError("must be an https URL, unless it is on this machine")


def public_url(value: str) -> None:
    problem = "must be an http or https URL without a user, query or fragment"
    if urls.split_http_url(value, problem).query:
        raise ValueError(problem)


def site_url(value: str) -> None:
    public_url(value)
    _target(value, "must be an http or https URL without a user, query or fragment")


def site_login_url(value: str) -> None:
    problem = "must be an http or https URL without a user or fragment"
    urls.split_http_url(value, problem)
    _target(value, problem)


def _target(value: str, problem: str) -> None:
    if "*" in value:
        raise ValueError(f"{problem}: it has a wildcard")
    try:
        redirects.parse_pattern(value)
    except redirects.InvalidUrl as error:
        raise ValueError(f"{problem}: {error}") from None


def redirect_pattern(value: str) -> None:
    try:
        redirects.parse_pattern(value)
    except redirects.InvalidUrl as error:
        raise ValueError(f"must be URLs or patterns: {error}") from None


def jwk_set(value: str) -> None:
    try:
        signing_keys.parse_jwk_set(value)
    except (ValueError, OSError) as error:
        # The text of an OSError has the path, which may be a mistyped key.
        reason = error.strerror if isinstance(error, OSError) else error
        raise ValueError(
            "must be a JWK Set or array of ES256, EdDSA, RS256 or HS256 keys, or the path of a file with one"
            f" ({reason})"
        ) from None


def signing_jwk_set(value: str) -> None:
    jwk_set(value)
    if not signing_keys.can_sign(value):
        raise ValueError("must be a JWK Set with a key that can sign, or AUTH_JWT_SECRET must be set")


def address(value: str) -> None:
    host, _, port = value.rpartition(":")
    is_host = re.fullmatch(r"[A-Za-z0-9.-]+|\[[0-9A-Fa-f:.]+\]", host)
    if not (is_host and re.fullmatch(r"[0-9]{1,5}", port) and 0 < int(port) <= 65_535):
        raise ValueError("must be a host and a port, such as 127.0.0.1:9100")


def bind(value: str) -> str:
    """Return an address to listen on, without the brackets that an IPv6 address has in URLs."""
    host = re.sub(r"\A\[(.*:.*)\]\Z", r"\1", value)
    try:
        ip_address(host)
    except ValueError:
        if not re.fullmatch(r"[A-Za-z0-9.-]+", host):
            raise ValueError(
                "must be an address such as 127.0.0.1 or ::1; PORT is a setting of its own"
            ) from None
    return host


def domains(value: str) -> frozenset[str]:
    """Return the domains of a list, or of the file that it is the path of, as they are in addresses."""
    given = value.split(",")
    if "/" in value:
        try:
            given = Path(value).read_text().splitlines()
        except (OSError, UnicodeDecodeError) as error:
            reason = getattr(error, "strerror", None) or "not text"
            raise ValueError(
                f"must be domains, or the path of a file with one in each line ({reason})"
            ) from None
    named = [text for line in given if (text := line.partition("#")[0].strip())]
    try:
        found = frozenset(addresses.canonical_domain(domain) for domain in named)
    except addresses.InvalidAddress:
        raise ValueError("must be domains such as example.com") from None
    if value.strip() and not found:
        raise ValueError("must have a domain, such as example.com")
    return found


def rate_limits(
    value: str, problem: str = "must be rate limits such as 1 per minute; 5 per hour"
) -> tuple[RateLimitItem, ...]:
    with suppress(ValueError):
        parsed = tuple(limits.parse_many(value))
        if all(limit.amount > 0 for limit in parsed):
            return parsed
    raise ValueError(problem)


def rate_limit(value: str) -> RateLimitItem:
    problem = "must be a rate limit such as 30 per 5 minutes"
    first, *others = rate_limits(value, problem)
    if others:
        raise ValueError(problem)
    return first


def smtp_url(value: str) -> None:
    if value != urls.CONSOLE:
        urls.smtp_server(value)
