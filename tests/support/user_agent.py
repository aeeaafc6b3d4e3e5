"""A simulated browser: cookies, redirects, forms and request metadata, without rendering.

Cookies follow RFC 6265bis (SameSite, Secure, `__Host-`, paths); requests carry Sec-Fetch-* and Origin as in
Fetch; form-action of the page's CSP applies to a form and its redirects, as in Chrome, but not to what follows
an immediate refresh. It does not depend on the service under test.
"""

import functools
import html
import http.client
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from html.parser import HTMLParser
from typing import Any
from urllib.parse import urlencode, urljoin, urlsplit

from werkzeug.datastructures import Headers

MOST_REDIRECTS = 20
FIREFOX = "Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0"


@dataclass
class Cookie:
    """A cookie. Ours and those of the fake providers are all host-only."""

    name: str
    value: str
    host: str
    path: str
    secure: bool
    http_only: bool
    same_site: str


@dataclass
class Form:
    """A form of a page: target, method and fields, and the targets of buttons that have their own."""

    action: str = ""
    method: str = "GET"
    fields: dict[str, str] = field(default_factory=dict)
    targets: list[str] = field(default_factory=list)


@dataclass
class Page:
    """The result of a navigation. `url` includes the fragment, and `trail` lists every URL on the way.

    `text` leaves out where a line may break in an address.
    """

    url: str
    status: int
    headers: Headers
    text: str
    trail: list[str]

    @functools.cached_property
    def forms(self) -> list[Form]:
        parser = _Forms()
        parser.feed(self.text)
        return parser.forms


class Blocked(Exception):
    """The page's Content-Security-Policy blocks the target of its form."""


class UserAgent:
    """One browser. `sites` maps origins to Flask test clients; loopback is requested over real sockets. A
    navigation to any other origin ends there, as at an application that is not running.
    """

    def __init__(self, sites: Mapping[str, Any] | None = None, *, fetch_metadata: bool = True) -> None:
        self.cookies: list[Cookie] = []
        self.page = Page("about:blank", 0, Headers(), "", [])
        # The sent requests, as (method, url, headers).
        self.requests: list[tuple[str, str, dict[str, str]]] = []
        self.answers: list[tuple[str, str, int, str]] = []
        self.accept = "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8"
        self._sites = sites or {}
        # Safari sends Sec-Fetch-* only since 2023, and browsers send them only over TLS and to loopback.
        self._fetch_metadata = fetch_metadata

    def visit(self, url: str, *, stop: Callable[[str], bool] = lambda url: False) -> Page:
        """Open a URL as if typed in. A redirect to a URL for which `stop` is true is not followed: see
        `page.url`.
        """
        return self._navigate("GET", url, None, None, stop)

    def click(self, url: str, *, stop: Callable[[str], bool] = lambda url: False) -> Page:
        """Follow a link on the current page."""
        return self._navigate("GET", urljoin(self.page.url, url), None, origin_of(self.page.url), stop)

    def submit(
        self, *, number: int = 0, stop: Callable[[str], bool] = lambda url: False, **fields: str
    ) -> Page:
        """Fill in and submit a form of the current page."""
        form = self.page.forms[number]
        return self.post(urljoin(self.page.url, form.action), form.fields | fields, stop=stop)

    def press(self, action: str, /, **fields: str) -> Page:
        """Submit the first form of the current page with this action, or with a button for it."""
        form, target = next(
            (form, target)
            for form in self.page.forms
            for target in (form.action, *form.targets)
            if target.endswith(action)
        )
        return self.post(urljoin(self.page.url, target), form.fields | fields)

    def post(
        self, url: str, fields: Mapping[str, str], *, stop: Callable[[str], bool] = lambda url: False
    ) -> Page:
        """Submit a form that the current page may not contain, as its script could."""
        return self._navigate("POST", url, urlencode(fields), origin_of(self.page.url), stop)

    def be_at(self, url: str) -> None:
        """Show a page of another site."""
        self.page = Page(url, 200, Headers(), "", [url])

    def cookie(self, name: str) -> Cookie | None:
        return next((cookie for cookie in self.cookies if cookie.name == name), None)

    def _navigate(
        self, method: str, url: str, body: str | None, initiator: str | None, stop: Callable[[str], bool]
    ) -> Page:
        source, trail, is_form = self.page, [url], body is not None
        while True:
            if is_form:
                _check_form_action(source, url)
            if stop(url) or not self._is_there(url):
                self.page = Page(url, 0, Headers(), "", trail)
                return self.page
            status, headers, text = self._request(method, url, body, initiator, trail, _sends_origin(source))
            target = headers.get("Location")
            if status not in (301, 302, 303, 307, 308) or not target:
                # An address is found as a whole, wherever the page may break it.
                text = re.sub(r'<wbr>|<span class="whole">(.*?)</span>', r"\1", text)
                self.page = Page(url, status, headers, text, trail)
                return self._refreshed(stop)
            if status == 303 or (status in (301, 302) and method == "POST"):
                method, body = "GET", None
            # A fragment is kept through redirects without their own fragment.
            fragment = urlsplit(url).fragment
            url = urljoin(url, target)
            if fragment and "#" not in url:
                url += f"#{fragment}"
            trail.append(url)
            assert len(trail) < MOST_REDIRECTS, trail

    def _refreshed(self, stop: Callable[[str], bool]) -> Page:
        """Follow the refresh of the current page, if it has one."""
        refresh = re.search(r'<meta http-equiv="refresh" content="0;url=([^"]*)">', self.page.text)
        if refresh:
            url, trail = urljoin(self.page.url, html.unescape(refresh[1])), self.page.trail
            self._navigate("GET", url, None, origin_of(self.page.url), stop)
            self.page.trail[:0] = trail
        return self.page

    def _is_there(self, url: str) -> bool:
        return origin_of(url) in self._sites or (urlsplit(url).scheme == "http" and _is_loopback(url))

    def _request(
        self,
        method: str,
        url: str,
        body: str | None,
        initiator: str | None,
        trail: list[str],
        sends_origin: bool,
    ) -> tuple[int, Headers, str]:
        origin = origin_of(url)
        headers = {
            "User-Agent": FIREFOX,
            "Accept": self.accept,
            "Accept-Language": "en",
        }
        if body is not None:
            headers["Content-Type"] = "application/x-www-form-urlencoded"
        if method == "POST":
            crosses = any(origin_of(earlier) != initiator for earlier in trail[:-1])
            headers["Origin"] = initiator if initiator and sends_origin and not crosses else "null"
        if self._fetch_metadata and _is_trustworthy(url):
            headers |= {
                "Sec-Fetch-Dest": "document",
                "Sec-Fetch-Mode": "navigate",
                "Sec-Fetch-Site": _fetch_site(initiator, trail),
                "Sec-Fetch-User": "?1",
            }
        if cookies := self._cookies_for(method, url, initiator):
            headers["Cookie"] = "; ".join(f"{cookie.name}={cookie.value}" for cookie in cookies)
        self.requests.append((method, url, headers))
        answer = (
            _ask_site(self._sites[origin], method, url, headers, body)
            if origin in self._sites
            else _ask(method, url, headers, body)
        )
        self.answers.append((method, urlsplit(url).path, *answer[::2]))
        for header in answer[1].getlist("Set-Cookie"):
            self._store(header, url)
        return answer

    def _cookies_for(self, method: str, url: str, initiator: str | None) -> list[Cookie]:
        is_same_site = initiator is None or site_of(initiator) == site_of(url)
        parts = urlsplit(url)
        return [
            cookie
            for cookie in self.cookies
            if cookie.host == parts.hostname
            and _path_matches(parts.path or "/", cookie.path)
            and (not cookie.secure or _is_trustworthy(url))
            # A top-level navigation from another site carries Lax cookies with safe methods, and never Strict
            # ones.
            and (
                is_same_site
                or cookie.same_site == "none"
                or (cookie.same_site == "lax" and method in ("GET", "HEAD"))
            )
        ]

    def _store(self, header: str, url: str) -> None:
        pair, *attributes = header.split(";")
        name, _, value = pair.strip().partition("=")
        named = {
            key.strip().lower(): text.strip()
            for key, _, text in (attribute.partition("=") for attribute in attributes)
        }
        same_site = named.get("samesite", "").lower()
        secure = "secure" in named
        host = urlsplit(url).hostname or ""
        is_refused = (
            (secure and not _is_trustworthy(url))
            or (same_site == "none" and not secure)
            or (name.startswith("__Secure-") and not secure)
            or (
                name.startswith("__Host-")
                and not (secure and "domain" not in named and named.get("path") == "/")
            )
        )
        if is_refused:
            return
        path = named.get("path", "")
        if not path.startswith("/"):
            path = urlsplit(url).path.rpartition("/")[0] or "/"
        self.cookies = [
            cookie for cookie in self.cookies if (cookie.name, cookie.host, cookie.path) != (name, host, path)
        ]
        if named.get("max-age") != "0":
            # Without SameSite a cookie is Lax.
            kind = same_site if same_site in ("strict", "none") else "lax"
            self.cookies.append(Cookie(name, value, host, path, secure, "httponly" in named, kind))


def origin_of(url: str) -> str:
    parts = urlsplit(url)
    return f"{parts.scheme}://{parts.netloc}"


def site_of(url: str) -> tuple[str, str]:
    """Return the scheme and the registrable domain, for the public suffixes of these tests; the port does not
    matter.
    """
    parts = urlsplit(url)
    host = parts.hostname or ""
    return parts.scheme, host if re.fullmatch(r"[\d.]+|.*:.*", host) else ".".join(host.split(".")[-2:])


def _is_loopback(url: str) -> bool:
    return urlsplit(url).hostname in ("127.0.0.1", "localhost")


def _is_trustworthy(url: str) -> bool:
    return urlsplit(url).scheme == "https" or _is_loopback(url)


def _path_matches(path: str, prefix: str) -> bool:
    return path == prefix or (path.startswith(prefix) and (prefix.endswith("/") or path[len(prefix)] == "/"))


def _fetch_site(initiator: str | None, trail: list[str]) -> str:
    if initiator is None:
        return "none"
    if all(origin_of(url) == initiator for url in trail):
        return "same-origin"
    return "same-site" if all(site_of(url) == site_of(initiator) for url in trail) else "cross-site"


def _sends_origin(source: Page) -> bool:
    """Return whether a POST names its origin; a page without referrer sends `null`."""
    return source.headers.get("Referrer-Policy") != "no-referrer"


def _check_form_action(source: Page, url: str) -> None:
    match = re.search(r"form-action ([^;]*)", source.headers.get("Content-Security-Policy", ""))
    if match:
        allowed = [origin_of(source.url) if word == "'self'" else word for word in match[1].split()]
        if origin_of(url) not in allowed and f"{urlsplit(url).scheme}:" not in allowed:
            raise Blocked(f"form-action {match[1]} of {source.url} keeps its form from {url}")


def _ask_site(
    client: Any, method: str, url: str, headers: dict[str, str], body: str | None
) -> tuple[int, Headers, str]:
    parts = urlsplit(url)
    path = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
    response = client.open(path, method=method, headers=headers, data=body, base_url=origin_of(url))
    return response.status_code, response.headers, response.text


def _ask(method: str, url: str, headers: dict[str, str], body: str | None) -> tuple[int, Headers, str]:
    parts = urlsplit(url)
    connection = http.client.HTTPConnection(parts.netloc, timeout=30)
    try:
        connection.request(
            method, (parts.path or "/") + (f"?{parts.query}" if parts.query else ""), body, headers
        )
        response = connection.getresponse()
        return response.status, Headers(response.getheaders()), response.read().decode()
    finally:
        connection.close()


class _Forms(HTMLParser):
    """Collects the forms of a page. A button counts only if `submit` names it."""

    def __init__(self) -> None:
        super().__init__()
        self.forms: list[Form] = []
        self._textarea: str | None = None
        self._select = ""

    def handle_data(self, data: str) -> None:
        if self._textarea:
            # The first line break of a textarea is not part of its value.
            self.forms[-1].fields[self._textarea] += data.removeprefix("\n")

    def handle_endtag(self, tag: str) -> None:
        if tag == "textarea":
            self._textarea = None

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        named = {name: value or "" for name, value in attributes}
        if tag == "form":
            self.forms.append(Form(named.get("action", ""), named.get("method", "get").upper()))
        elif (
            tag == "input"
            and self.forms
            and "name" in named
            and named.get("type") not in ("submit", "button", "checkbox")
            and (named.get("type") != "radio" or "checked" in named)
        ):
            self.forms[-1].fields[named["name"]] = named.get("value", "")
        elif tag == "textarea" and self.forms:
            self._textarea = named["name"]
            self.forms[-1].fields[named["name"]] = ""
        elif tag == "select":
            self._select = named["name"]
        elif tag == "option" and self.forms and "selected" in named:
            self.forms[-1].fields[self._select] = named["value"]
        elif "formaction" in named and self.forms:
            self.forms[-1].targets.append(named["formaction"])
