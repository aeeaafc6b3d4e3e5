"""Parsers of addresses in settings. Each raises `ValueError`, whose message quotes no secret."""

import base64
import re
from contextlib import suppress
from dataclasses import dataclass
from email.headerregistry import Address
from email.utils import parseaddr
from urllib.parse import SplitResult, parse_qsl, unquote, urlsplit

from email_validator import EmailNotValidError, validate_email

# Makes email-validator accept localhost, .test and the like.
import auth.core.addresses  # noqa: F401
from auth.core.net.networks import is_loopback

CONSOLE = "console"
HTTP_URL = "must be a URL such as https://example.com/path, without a user or fragment"


@dataclass(frozen=True, repr=False)
class SmtpServer:
    """No repr: it would show the password."""

    host: str
    port: int
    user: str
    password: str
    implicit_tls: bool
    starttls: str  # `offered`, `required` or `never`


def smtp_server(url: str) -> SmtpServer:
    problem = ValueError(
        "must be console, or a URL such as smtp://user:password@host:587 or smtps://user:password@host:465."
        " Percent-encode special characters in the password: %40 for @, %2F for /"
    )
    try:
        parts = urlsplit(url)
        port = parts.port
        options = dict(parse_qsl(parts.query, keep_blank_values=True, strict_parsing=bool(parts.query)))
    except ValueError:
        raise problem from None
    is_server = parts.scheme in ("smtp", "smtps") and parts.hostname and port != 0
    if not parts.hostname or not is_server or parts.path not in ("", "/") or parts.fragment:
        raise problem
    starttls = options.pop("starttls", "offered" if is_loopback(parts.hostname) else "required")
    is_known = starttls in ("offered", "required", "never") and not options
    if not is_known or (parts.scheme == "smtps" and parts.query):
        raise ValueError("must have no option except ?starttls=required, offered or never with smtp://")
    user, password = unquote(parts.username or ""), unquote(parts.password or "")
    if password and not user:
        raise ValueError("must have a user if it has a password")
    if not re.fullmatch(r"[ -~]*", user + password):
        raise ValueError("must have a user and password in printable ASCII")
    is_implicit = parts.scheme == "smtps"
    return SmtpServer(
        parts.hostname, port or (465 if is_implicit else 587), user, password, is_implicit, starttls
    )


def mail_address(text: str, default_name: str = "") -> Address:
    """Parse `Name <address>`, or an address alone."""
    # parseaddr ends a name at a comma or colon, and silently drops what it cannot parse.
    unquoted = re.fullmatch(r'\s*([^"<>]*?)\s*<([^<>]*)>\s*', text)
    name, address = unquoted.groups() if unquoted else parseaddr(text)
    problem = "must be an address such as Example <no-reply@example.com>, with ASCII before the @"
    if text.count("@") != 1 or re.search(r"[\r\n\0]", text) or len(name) > 100:
        raise ValueError(problem)
    with suppress(EmailNotValidError):
        valid = validate_email(address, check_deliverability=False, globally_deliverable=False)
        if valid.ascii_local_part:
            return Address(name or default_name, valid.ascii_local_part, valid.ascii_domain)
    raise ValueError(problem)


def webhook_secret(text: str) -> str:
    """Parse `whsec_` and 24 to 64 bytes in base64 (Standard Webhooks)."""
    encoded = text.removeprefix("whsec_")
    try:
        length = len(base64.b64decode(encoded + "=" * (-len(encoded) % 4), validate=True))
    except ValueError:  # also raised for text that is not ASCII
        length = 0
    if not 24 <= length <= 64:
        raise ValueError("must be whsec_ and 24 to 64 random bytes in base64")
    return text


def http_url(text: str, problem: str = HTTP_URL) -> str:
    split_http_url(text, problem)
    if not re.fullmatch(r"[!-~]+", text):
        raise ValueError(problem)
    return text


def in_lower_case(url: str) -> str:
    """Return a URL with its scheme and host in lower case."""
    start = re.match(r"[^:/?#]+://[^/?#]*", url)
    return url[: start.end()].lower() + url[start.end() :] if start else url


def origin(text: str) -> str:
    """Return an origin as browsers send it: in lower case, without the default port."""
    text = in_lower_case(text.strip())
    return text.removesuffix({"https": ":443", "http": ":80"}.get(text.partition("://")[0], ""))


def split_http_url(text: str, problem: str) -> SplitResult:
    """Split an http or https URL without user and fragment. Raises `ValueError(problem)`."""
    with suppress(ValueError):
        parts = urlsplit(text)
        is_complete = parts.scheme in ("http", "https") and parts.hostname and parts.port != 0
        if is_complete and not parts.fragment and not parts.username:
            return parts
    raise ValueError(problem)
