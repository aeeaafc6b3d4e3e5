"""URIs of clients: redirect URIs (RFC 8252, section 7) and addresses of websites."""

import re
from urllib.parse import SplitResult, urlsplit

from auth.core.net import webhook_urls
from auth.core.settings import Settings

_CHARACTERS = re.compile(r"[!-~]+")
_FORBIDDEN = re.compile(r'[\\"<>^`{|}]')
# The characters of an authority, without a user.
_HOST = re.compile(r"(?:[A-Za-z0-9._-]+|\[[0-9A-Fa-f:.]+\])(?::[0-9]{1,5})?")
_FORBIDDEN_SCHEMES = {
    "javascript", "data", "file", "vbscript", "about", "blob", "filesystem", "view-source",
}  # fmt: skip
_LOOPBACK = re.compile(r"(http://(?:localhost|127\.0\.0\.1|\[::1\]))(?::([0-9]{1,5}))?((?:[/?].*)?)")
_LOOPBACK_HOST = re.compile(r"(?:.*\.)?localhost\.?|127\..*|::1|0\.0\.0\.0", re.IGNORECASE)


class InvalidUri(ValueError):
    """The message is for administrators and developers of clients."""


def check_redirect(uri: str) -> None:
    """Check a redirect URI that an administrator registers. Raises `InvalidUri`."""
    parts = split(uri)
    if parts.scheme in _FORBIDDEN_SCHEMES:
        raise InvalidUri(f"the scheme {parts.scheme} does not lead to an application")
    if parts.netloc or parts.scheme in ("http", "https"):
        _check_host(parts)
    elif "." not in parts.scheme or not parts.path.startswith("/"):
        raise InvalidUri("it must have a host, or a scheme with a dot and a path: com.example.app:/callback")
    if parts.scheme == "http" and not _LOOPBACK.fullmatch(uri):
        raise InvalidUri("http is only for localhost, 127.0.0.1 and [::1]")


def check_open_redirect(settings: Settings, uri: str) -> None:
    """Check a redirect URI that a dynamic client registers. Raises `InvalidUri`."""
    check_redirect(uri)
    if not is_open_scheme(settings, uri):
        scheme = urlsplit(uri).scheme
        raise InvalidUri(f"the scheme {scheme} must have a dot or be in AUTH_OAUTH_REDIRECT_SCHEMES")


def is_open_scheme(settings: Settings, uri: str) -> bool:
    """Whether a client that no administrator made may redirect to a URI, now.

    Only some schemes without a dot are allowed: others, such as intent:// and ms-settings://, open programs
    of the system.
    """
    scheme = urlsplit(uri).scheme
    return "." in scheme or scheme in ("http", "https", *settings.oauth_redirect_schemes)


def check_web(uri: str) -> None:
    """Check the address of a website or a picture. Raises `InvalidUri`."""
    parts = split(uri)
    if parts.scheme not in ("http", "https"):
        raise InvalidUri("it must begin with https:// or http://")
    _check_host(parts)


def check_backchannel(settings: Settings, uri: str) -> None:
    """Check the URI for notifications of ended sessions, and its host's addresses. Raises `InvalidUri`."""
    try:
        webhook_urls.check_url(uri, settings.webhook_private_networks)
    except webhook_urls.InvalidWebhookUrl as error:
        raise InvalidUri(f"it {error}") from None


def matches(registered: str, uri: str) -> bool:
    """Whether a request's redirect URI is the registered one. A loopback URI may have any port."""
    if uri == registered:
        return True
    portless = _without_port(uri)
    return portless is not None and portless == _without_port(registered)


def shares_host(uri: str, other: str) -> bool:
    """Whether redirect URIs lead to the same program: that of a host, or of an application's own scheme."""
    parts, others = urlsplit(_without_port(uri) or uri), urlsplit(_without_port(other) or other)
    return (parts.scheme, parts.netloc.lower()) == (others.scheme, others.netloc.lower())


def is_native(uri: str) -> bool:
    """Whether a redirect URI opens an application on the device. Any program may register for such a URI."""
    parts = urlsplit(uri)
    return parts.scheme != "https" or bool(_LOOPBACK_HOST.fullmatch(parts.hostname or ""))


def host(uri: str) -> str:
    """Return the host of a redirect URI, or the scheme of an application without one."""
    parts = urlsplit(uri)
    return parts.netloc or parts.scheme


def _without_port(uri: str) -> str | None:
    parts = _LOOPBACK.fullmatch(uri)
    return parts[1] + parts[3] if parts and 0 < int(parts[2] or 80) < 65536 else None


def split(uri: str) -> SplitResult:
    """Split an absolute URI without a fragment. Raises `InvalidUri`."""
    if not _CHARACTERS.fullmatch(uri) or _FORBIDDEN.search(uri):
        raise InvalidUri("it has a character that a URI may not have")
    try:
        parts = urlsplit(uri)
        _ = parts.port
    except ValueError:
        raise InvalidUri("it is malformed") from None
    # urlsplit lower-cases the scheme, so compare the URI.
    if not parts.scheme or not uri.startswith(f"{parts.scheme}:"):
        raise InvalidUri("it must begin with a scheme in lower case, such as https://")
    if "#" in uri:
        raise InvalidUri("it must not have a fragment")
    return parts


def _check_host(parts: SplitResult) -> None:
    if not _HOST.fullmatch(parts.netloc):
        raise InvalidUri("it must have a host, and no user")
