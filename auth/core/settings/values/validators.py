"""Checks of settings. Each raises `ValueError`, whose message does not quote the value."""

import json
import re
from collections.abc import Callable, Mapping
from contextlib import suppress
from ipaddress import ip_address
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

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
from auth.core.tokens import client_ids, derived_keys, signing_keys
from auth.core.tokens.signing_keys import SECOND_STEP

Validator = Callable[[str], object]
# At least eight letters, so that random secrets do not contain them by chance.
_PLACEHOLDER = re.compile(
    r"change.?me|replace.?(me|this)|your.?(secret|own)|super.?secret|placeholder", re.IGNORECASE
)
# The URL of an API, and one scope of it (RFC 6749, section 3.3).
_API = r"https?://[!$-;=?-\[\]_a-z~]+"
_EMPTY_PATH = r"^([a-z]+://[^/?]+)(\?|$)"
_SCOPE = r"[!#-\[\]-~]{1,64}"
_SCOPES_OF_USERS = {
    "openid", "profile", "email", "phone", "address", "offline_access", "groups", "roles", "organization",
    "organizations",
}  # fmt: skip
_PUBLIC_URL = "must be a URL such as https://example.com, without a user, query or fragment"
_DOMAINS = "must be domains such as example.com, or the path of a file with a domain on each line"


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
    """Return a text with a full stop, unless it ends with a line to paste."""
    text = str(error)
    return _capital(text) + ("" if ": chmod " in text else ".")


def _capital(text: str) -> str:
    return text[:1].upper() + text[1:]


def matching(pattern: str, problem: str) -> Validator:
    def check(value: str) -> None:
        if not re.fullmatch(pattern, value):
            raise ValueError(problem)

    return check


sms_provider = matching(
    "none|console|twilio", "must be none, console or twilio. For a webhook, set AUTH_HOOK_SEND_SMS"
)
site_key = matching(r"[A-Za-z0-9_.-]*", "must be letters, digits and hyphens, as the provider shows it")
country_prefix = matching(r"\+[1-9][0-9]{0,6}", "must be prefixes of phone numbers such as +1,+49")
redirect_scheme = matching(
    r"[a-z][a-z0-9+-]*", "must be schemes of applications such as cursor,vscode, without a dot"
)
audience = matching(
    rf"(?!{SECOND_STEP}\Z|[0-9a-fA-F-]{{36}}\Z).*",
    f"is {SECOND_STEP} or a UUID, which only other tokens have. Use another name, such as authenticated",
)
twilio_id = matching(r"[A-Za-z0-9]+", "must be letters and digits, as Twilio shows it")


def origin(value: str) -> None:
    problem = "must be * or origins such as https://app.example.com, without a path or wildcard"
    if value != "*":
        one_origin(value, r"[a-z][a-z0-9+.-]*://[a-z0-9.-]+(:[0-9]+)?", problem)


def one_origin(value: str, pattern: str, problem: str) -> None:
    """Raise `ValueError(problem)` for a value that browsers do not send."""
    matching(pattern, problem)(value)
    try:
        redirects.parse_origin(value)
    except redirects.InvalidUrl:
        raise ValueError(problem) from None


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
    """Refuse secrets that were typed, not generated. One of 10^10 generated secrets looks typed."""
    remedy = "Generate one, for example with openssl rand -hex 32"
    if len(set(value)) < 8:
        raise ValueError(f"must have at least 8 different characters. {remedy}")
    # A repeated text equals itself when it is shifted by the length of the unit.
    if any(value.startswith(value[unit:]) for unit in range(1, len(value) // 2 + 1)):
        raise ValueError(f"repeats itself. {remedy}")
    if _PLACEHOLDER.search(value):
        raise ValueError(f"is a placeholder. {remedy}")


def backup_recipient(value: str) -> None:
    try:
        pyrage.x25519.Recipient.from_str(value)
    except pyrage.RecipientError:
        raise ValueError("must be what latchkey backup-key prints, which begins with age1") from None


def document_hosts(value: str) -> tuple[str, ...]:
    hosts = tuple(host.strip() for host in value.split(","))
    if hosts in (("none",), ("",)):
        return ()
    if hosts != ("*",) and not all(re.fullmatch(client_ids.HOST, host) for host in hosts):
        raise ValueError("must be none, *, or hosts such as claude.ai,vscode.dev")
    return hosts


def api_scopes(value: str) -> Mapping[str, tuple[str, ...]]:
    example = 'must be a JSON object such as {"https://api.example.com/notes": "notes:read notes:write"}'
    try:
        # Read the object as a tuple of pairs, which keeps repeated URIs.
        pairs = json.loads(value or "{}", object_pairs_hook=tuple)
    except (ValueError, RecursionError):
        raise ValueError(example) from None
    if not isinstance(pairs, tuple) or not all(isinstance(each, str) and each.split() for _, each in pairs):
        raise ValueError(example)
    # As auth/rules/clients.py compares resources, an empty path is "/".
    if len({re.sub(_EMPTY_PATH, r"\1/\2", uri) for uri, _ in pairs}) < len(pairs):
        raise ValueError("names an API twice. Give it all of its scopes at once")
    for uri, scopes in pairs:
        if not re.fullmatch(_API, uri):
            raise ValueError(
                "has a name that is not a URL. Use the https or http URL of each API, without a fragment"
            )
        for scope in scopes.split():
            if not re.fullmatch(_SCOPE, scope) or scope.partition(":")[0] in _SCOPES_OF_USERS:
                raise ValueError(
                    'must have scopes of APIs, without " and \\, and none about users, such as openid'
                )
    return {uri: tuple(dict.fromkeys(scopes.split())) for uri, scopes in pairs}


def postgres_url(value: str) -> None:
    example = "must be a URL such as postgresql://user:password@host/database"
    if not value.startswith(("postgresql://", "postgres://")):
        raise ValueError(example)
    try:
        parts = parse_dsn(value)
    except psycopg2.ProgrammingError as error:  # its message quotes the password
        unknown = re.search(r'invalid URI query parameter: "(\w+)"', str(error))
        if unknown and "@" not in value.partition("?")[2]:
            raise ValueError(
                f"has the parameter {unknown[1]}, which libpq does not know. Remove it"
            ) from None
        parts = {"host": "@"}
    # If the password contains @, / or ?, its end is parsed as the host or the database.
    misread = "@" in parts.get("host", "") + parts.get("dbname", "")
    if misread or not re.fullmatch(r"[0-9,]*", parts.get("port", "")):
        raise ValueError(
            f"{example}. Percent-encode special characters in the password: %40 for @, %2F for /"
        )


def https_url(value: str) -> None:
    parts = urls.split_http_url(urls.http_url(value), "must be an https URL")
    if parts.scheme == "http" and not is_loopback(parts.hostname or ""):
        raise ValueError("must be an https URL, unless it is on this machine")


def public_url(value: str) -> None:
    urls.split_http_url(value, _PUBLIC_URL)
    if "?" in value:
        raise ValueError(_PUBLIC_URL)
    _target(value, _PUBLIC_URL)


def issuer(value: str) -> None:
    try:
        urlsplit(value)
    except ValueError:
        raise ValueError("must be a URL such as https://auth.example.com") from None


def site_login_url(value: str) -> None:
    urls.split_http_url(value, urls.HTTP_URL)
    _target(value, urls.HTTP_URL)


def _target(value: str, problem: str) -> None:
    if "*" in value:
        raise ValueError("has a wildcard. Remove it")
    redirect_pattern(value, problem)


def redirect_pattern(
    value: str, problem: str = "must be URLs or patterns such as https://app.example.com/**"
) -> None:
    try:
        redirects.parse_pattern(value)
    except redirects.InvalidUrl as error:
        raise ValueError(f"{error}. {_capital(problem)}") from None


def jwk_set(value: str) -> None:
    try:
        signing_keys.parse_jwk_set(value)
    except (ValueError, OSError) as error:
        # The text of an OSError has the path, which may be a mistyped key.
        reason = error.strerror if isinstance(error, OSError) else error
        raise ValueError(
            f"{reason}. Must be a JWK Set or array of ES256, EdDSA, RS256 or HS256 keys, or the path of a"
            " file with one"
        ) from None


def signing_jwk_set(value: str) -> None:
    jwk_set(value)
    if not signing_keys.can_sign(value):
        raise ValueError(
            "has no key that can sign. Must be a JWK Set with one, or AUTH_JWT_SECRET must be set"
        )


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
            raise ValueError("must be an address such as 127.0.0.1 or ::1. Set the port by PORT") from None
    return host


def captcha(value: str) -> None:
    if value not in ("off", "altcha", "turnstile", "hcaptcha"):
        urls.http_url(
            value, "must be off, altcha, turnstile, hcaptcha or the URL that verifies tokens (siteverify)"
        )


def leaked_passwords(value: str) -> None:
    if value not in ("", "file", "online", "off"):
        urls.http_url(value, "must be file, online, off or the URL of a mirror of the range API")


def domains(value: str) -> frozenset[str]:
    """Return the domains of a list, or of the file at a path, in their canonical form."""
    lines = value.split(",")
    if "/" in value:
        try:
            lines = Path(value).read_text(encoding="utf-8-sig").splitlines()
        except (OSError, UnicodeDecodeError) as error:
            reason = getattr(error, "strerror", None) or "not text"
            raise ValueError(f"{reason}. {_capital(_DOMAINS)}") from None
    names = [name for line in lines if (name := line.partition("#")[0].strip())]
    try:
        canonical = frozenset(addresses.canonical_domain(name) for name in names)
    except addresses.InvalidAddress:
        raise ValueError(_DOMAINS) from None
    if value.strip() and not canonical:
        raise ValueError(_DOMAINS)
    return canonical


def rate_limit_storage(value: str) -> None:
    with suppress(ValueError):
        if re.fullmatch(r"postgresql|memory://|rediss?://[!-~]+", value) and urlsplit(value).port != 0:
            return
    raise ValueError("must be postgresql, memory:// or a URL such as redis://host:6379/0")


def rate_limits(
    value: str, problem: str = "must be rate limits such as 1 per minute; 5 per hour"
) -> tuple[RateLimitItem, ...]:
    with suppress(ValueError):
        items = tuple(limits.parse_many(value))
        if all(limit.amount > 0 for limit in items):
            return items
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
