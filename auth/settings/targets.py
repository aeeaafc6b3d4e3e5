"""Where messages go, as the settings name it. Each function raises `ValueError`, in words that quote no
secret.
"""

import base64
import binascii
import re
from dataclasses import dataclass
from email.headerregistry import Address
from email.utils import parseaddr
from urllib.parse import parse_qsl, unquote, urlsplit

from email_validator import EmailNotValidError, validate_email

# It makes localhost, .test and the like addresses for email-validator.
import auth.addresses  # noqa: F401

CONSOLE = "console"
_SMTP_FORM = "smtp://user:password@host:587, smtps://user:password@host:465, or console"
_PRINTABLE_ASCII = re.compile(r"[ -~]*")
_PREFIX = re.compile(r"\+[1-9][0-9]{0,6}")
_SECRET_BYTES = range(24, 65)


@dataclass(frozen=True, repr=False)
class SmtpServer:
    """A mail server that takes our messages. The repr is left out for the password's sake."""

    host: str
    port: int
    user: str
    password: str
    # TLS from the first byte; else by STARTTLS: `offered`, `required` or `never`.
    implicit_tls: bool
    starttls: str


def smtp_server(url: str) -> SmtpServer:
    """Read `AUTH_SMTP_URL`."""
    try:
        parts = urlsplit(url)
        port = parts.port
        options = dict(parse_qsl(parts.query, keep_blank_values=True, strict_parsing=bool(parts.query)))
    except ValueError:
        raise ValueError(
            f"must be a URL such as {_SMTP_FORM}; percent-encode what is special in the password"
        ) from None
    if (
        parts.scheme not in ("smtp", "smtps")
        or not parts.hostname
        or parts.path not in ("", "/")
        or parts.fragment
        or port == 0
    ):
        raise ValueError(
            f"must be a URL such as {_SMTP_FORM}; percent-encode what is special in the password"
        )
    starttls = options.pop("starttls", "offered")
    if (
        options
        or starttls not in ("offered", "required", "never")
        or (parts.scheme == "smtps" and "starttls=" in parts.query)
    ):
        raise ValueError("knows one option: ?starttls=required or ?starttls=never, for smtp://")
    user, password = unquote(parts.username or ""), unquote(parts.password or "")
    if bool(user) != bool(password):
        raise ValueError("must have both a user and a password, or neither")
    if not _PRINTABLE_ASCII.fullmatch(user + password):
        raise ValueError("must have a user and password in printable ASCII")
    return SmtpServer(
        parts.hostname,
        port or {"smtp": 587, "smtps": 465}[parts.scheme],
        user,
        password,
        parts.scheme == "smtps",
        starttls,
    )


def mail_address(text: str) -> Address:
    """Read `AUTH_MAIL_FROM`: `Name <address>`, or an address alone."""
    name, address = parseaddr(text)
    try:
        # parseaddr takes what it understands and drops the rest.
        if (
            not address
            or any(character in text for character in "\r\n\0")
            or text.count("@") != 1
            or len(name) > 100
        ):
            raise ValueError
        valid = validate_email(address, check_deliverability=False, globally_deliverable=False)
        if not valid.ascii_local_part:
            raise ValueError
        return Address(display_name=name, username=valid.ascii_local_part, domain=valid.ascii_domain)
    except (EmailNotValidError, ValueError):
        raise ValueError(
            "must be an address such as Example <no-reply@example.com>; its part before the @ in ASCII"
        ) from None


def webhook_secret(text: str) -> str:
    """Read a secret that signs what is posted: `whsec_` and 24 to 64 bytes in base64 (Standard Webhooks)."""
    encoded = text.removeprefix("whsec_")
    try:
        length = len(base64.b64decode(encoded + "=" * (-len(encoded) % 4), validate=True))
    except binascii.Error:
        length = 0
    if length not in _SECRET_BYTES:
        raise ValueError("must be whsec_ and 24 to 64 random bytes in base64")
    return text


def http_url(text: str) -> str:
    """Read a URL that is posted to."""
    try:
        parts = urlsplit(text)
        is_usable = (
            parts.scheme in ("http", "https")
            and bool(parts.hostname)
            and not parts.fragment
            and not parts.username
            and parts.port != 0
        )
    except ValueError:
        is_usable = False
    if not is_usable or not re.fullmatch(r"[!-~]+", text):
        raise ValueError("must be an http or https URL without user and fragment")
    return text


def country_prefix(text: str) -> str:
    """Read one prefix of phone numbers: `+49`."""
    if not _PREFIX.fullmatch(text):
        raise ValueError("must be prefixes of phone numbers such as +1,+49")
    return text
