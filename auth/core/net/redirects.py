"""Redirects to the application (RFC 9700, section 4.1). Refuses URLs that parsers read differently."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from urllib.parse import SplitResult, quote, unquote, unquote_plus, urlencode, urlsplit

_MAX_LENGTH = 2048
_DEFAULT_PORTS = {"http": 80, "https": 443}
_CHARACTERS = re.compile(r"[!-~]+")
_FORBIDDEN = re.compile(r"[\\#\"<>]")
# Browsers percent-encode these in a path.
_UNENCODED = re.compile(r"[\^`{|}]")
_ESCAPE = re.compile(r"%[0-9a-f]{2}", re.IGNORECASE)
# Some servers remove path parameters (;…) before they resolve dot segments.
_DOT_SEGMENT = re.compile(r"(?:\.|%2e){1,2}(?:;.*)?", re.IGNORECASE)
_ENCODED_SEPARATOR = re.compile(r"%(?:2f|5c|25|[01][0-9a-f]|7f)", re.IGNORECASE)

# The parameters of an authorization response (RFC 6749, section 4.1.2).
_ANSWER = {"code", "error", "error_code", "error_description"}


class InvalidUrl(ValueError):
    """The message is for the operator."""


@dataclass(frozen=True)
class _Pattern:
    scheme: str
    host: re.Pattern[str]
    port: int | None
    path: re.Pattern[str]
    query: str

    def allows(self, parts: SplitResult) -> bool:
        return (
            self.scheme == parts.scheme
            and bool(self.host.fullmatch(parts.hostname or ""))
            and self.port == _port(parts)
            and bool(self.path.fullmatch(parts.path or "/"))
            and (not self.query or self.query == parts.query)
        )


@dataclass(frozen=True)
class _Scheme:
    """All URLs of an application: Expo's have the address and port of a developer's machine."""

    scheme: str

    def allows(self, parts: SplitResult) -> bool:
        return self.scheme == parts.scheme


class AllowList:
    """The URLs that may receive tokens: those of the site's origin, those that match a pattern, and those of
    our own pages to which a sign-in may return.
    """

    def __init__(
        self, site_url: str, patterns: Sequence[str], base_url: str = "", *, has_pages: bool = False
    ) -> None:
        self.site_url = site_url
        pages = ("sign-in", "new-password", "account", "account/company") if has_pages else ()
        self._own_pages = [parse_pattern(f"{base_url}/{page}") for page in pages]
        self._patterns = [parse_pattern(pattern) for pattern in (f"{origin(site_url)}/**", *patterns)]
        self._patterns += self._own_pages
        # Browsers keep the fragment, with the tokens, when these redirect to providers and applications.
        paths = ("authorize", "oauth/**", "auth/v1/authorize", "auth/v1/oauth/**") if base_url else ()
        self._own_redirects = [parse_pattern(f"{base_url}/{path}") for path in paths]

    def checked(self, url: str | None) -> str:
        """Return the URL if it is allowed, else the site's."""
        return self.allowed(url or "") or self.site_url

    def allowed(self, url: str) -> str | None:
        """Return the URL, percent-encoded, if it is allowed with any fragment."""
        url = _encoded(url)
        try:
            parts = _split_target(url)
        except InvalidUrl:
            return None
        # Servers skip slashes at the beginning of a path.
        as_routed = parts._replace(path=re.sub("//+", "/", unquote(parts.path)))
        if any(redirect.allows(as_routed) for redirect in self._own_redirects):
            return None
        # supabase-js adds an id of its flow, and expects it in the URL that it gets back.
        pairs = [pair for pair in parts.query.split("&") if not pair.startswith("sb_flow_id=")]
        parts = parts._replace(query="&".join(pairs))
        return url if any(pattern.allows(parts) for pattern in self._patterns) else None

    def is_own_page(self, url: str) -> bool:
        """Whether an allowed URL is a page of ours. It gets no tokens: the browser is signed in instead."""
        parts = _split_target(url)
        return any(page.allows(parts) for page in self._own_pages)


def parse_pattern(pattern: str) -> _Pattern | _Scheme:
    """Read a URL with `*` (in a host label or path segment) and `**` (the rest), or an application's scheme
    and `://**`. Raises `InvalidUrl`."""
    parts = _split(pattern)
    path = (parts.path or "/").removesuffix("/**")
    if parts.netloc == "**" and not path.strip("/") and not parts.query and not is_web(pattern):
        return _Scheme(parts.scheme)
    if "**" in parts.netloc:
        instead = "https://*.example.com/**" if is_web(pattern) else f"{parts.scheme}://**"
        raise InvalidUrl(f"has ** in its host. Write one such as {instead}")
    if "**" in path:
        raise InvalidUrl("has ** before the end of its path. Write * for one segment, and /** for the rest")
    rest = r"(?:/.*)?" if parts.path.endswith("/**") else ""
    host, path = _wildcard(parts.hostname or "", r"[a-z0-9-]+"), _wildcard(path, r"[^/]+") + rest
    return _Pattern(parts.scheme, re.compile(host), _port(parts), re.compile(path), parts.query)


def parse_origin(text: str) -> SplitResult:
    """Parse an origin as browsers send it. Raises `InvalidUrl`."""
    parts = _split(text)
    host = parts.hostname or ""
    host = f"[{host}]" if ":" in host else host
    if not host or text not in (f"{parts.scheme}://{host}", f"{parts.scheme}://{host}:{parts.port}"):
        raise InvalidUrl("it is not an origin")
    return parts


def with_fragment(url: str, parameters: Mapping[str, str | int]) -> str:
    """Return a URL with parameters as its fragment, instead of its own."""
    return f"{url.partition('#')[0]}#{urlencode(parameters, quote_via=quote)}"


def with_query(url: str, parameters: Mapping[str, str]) -> str:
    """Return a URL with further parameters in its query, before its fragment."""
    rest, sign, fragment = url.partition("#")
    joint = "?"
    if "?" in rest:
        joint = "" if rest.endswith(("?", "&")) else "&"
    return f"{rest}{joint}{urlencode(parameters, quote_via=quote)}{sign}{fragment}"


def with_answer(url: str, members: Mapping[str, str]) -> str:
    """Return a URL with an authorization response in its query, instead of an earlier one.

    An application may ask to return to the page that got the last error.
    """
    rest, sign, fragment = url.partition("#")
    path, _, query = rest.partition("?")
    replaced = _ANSWER | members.keys()
    pairs = [pair for pair in query.split("&") if unquote_plus(pair.partition("=")[0]) not in replaced]
    return with_query(f"{path}?{'&'.join(pairs)}{sign}{fragment}", members)


def is_web(url: str) -> bool:
    """Whether a URL belongs to a website, not to an application with its own scheme."""
    return urlsplit(url).scheme in _DEFAULT_PORTS


def origin(url: str) -> str:
    """Return a URL's source expression for a CSP: its origin, or the scheme of an application."""
    parts = urlsplit(url)
    return f"{parts.scheme}://{parts.netloc.lower()}" if is_web(url) else f"{parts.scheme}:"


def _wildcard(text: str, one: str) -> str:
    return one.join(map(re.escape, text.split("*")))


def _port(parts: SplitResult) -> int | None:
    return parts.port or _DEFAULT_PORTS.get(parts.scheme)


def _encoded(url: str) -> str:
    return _UNENCODED.sub(lambda match: quote(match[0]), url)


def _split_target(url: str) -> SplitResult:
    """Split a URL without its fragment, which browsers do not send. Raises `InvalidUrl`."""
    rest, _, fragment = url.partition("#")
    if len(url) > _MAX_LENGTH or not _CHARACTERS.fullmatch(f"#{fragment}") or "\\" in fragment:
        raise InvalidUrl("has a fragment with a character that a URL may not have")
    return _split(rest)


def _split(url: str) -> SplitResult:
    """Split a URL. Raises `InvalidUrl` if another parser might read it differently.

    The case of the scheme, host and escapes does not change the result, except `netloc`.
    """
    url = _ESCAPE.sub(lambda match: match[0].upper(), _encoded(url))
    if len(url) > _MAX_LENGTH or not _CHARACTERS.fullmatch(url) or _FORBIDDEN.search(url):
        raise InvalidUrl("has a fragment, or a character that a URL may not have")
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError:
        raise InvalidUrl("is malformed") from None
    if not parts.scheme or not url.lower().startswith(f"{parts.scheme}://") or port == 0:
        raise InvalidUrl("does not begin with a scheme and ://")
    if "@" in parts.netloc or parts.netloc.endswith(":"):
        raise InvalidUrl("has a user, or a colon without a port")
    if parts.scheme in _DEFAULT_PORTS and not parts.hostname:
        raise InvalidUrl("has no host")
    if parts.scheme in {"javascript", "data", "vbscript", "file", "blob"}:
        raise InvalidUrl("has a scheme that leads to no application")
    has_dot_segment = any(map(_DOT_SEGMENT.fullmatch, parts.path.split("/")))
    if has_dot_segment or _ENCODED_SEPARATOR.search(parts.path):
        raise InvalidUrl("has dot segments or encoded separators in its path")
    return parts
