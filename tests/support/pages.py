"""Visitors of our pages: simulated browsers at the application in this process."""

import html
import json
import re
from collections.abc import Iterator
from typing import Any, Self
from urllib.parse import urlencode, urljoin

from auth.core.tokens import one_time
from auth.html.forms import SESSION, VISIT, signed_query
from auth.web.context import EXTENSION
from sql import queries
from tests.support.links import SITE
from tests.support.user_agent import Cookie, Page, UserAgent, origin_of
from tests.support.users import PASSWORD


def words(page: Page) -> str:
    """Return the text of a page, without its tags and with single spaces."""
    body = page.text.partition("<main")[2].partition(">")[2].partition("</main>")[0]
    return " ".join(html.unescape(re.sub("<[^>]+>", " ", body)).split())


def without_signature(url: str) -> str:
    """Return a URL without the signature of the result that its page shows."""
    return re.sub(r"((?:done|error_code)=[a-z_-]+)\.[0-9]{10}\.[0-9a-f]{64}", r"\1", url)


def unsigned(page: Page) -> str:
    return without_signature(page.url)


class Visitor(UserAgent):
    """A browser at one application. Paths stand for URLs of the service."""

    def __init__(self, app: Any, origin: str = SITE, **options: Any) -> None:
        self.client = app.test_client(use_cookies=False)
        super().__init__({origin: self.client}, **options)
        self.origin = origin
        self._app, self._parts = app, app.extensions[EXTENSION]

    def go_on_at(self, app: Any) -> None:
        """Send requests to another node of the same origin from now on."""
        self.client = app.test_client(use_cookies=False)
        self._sites = {self.origin: self.client}

    def visit(self, url: str, **options: Any) -> Page:
        return super().visit(self.origin + url if url.startswith("/") else url, **options)

    def plant(self, name: str, value: str) -> None:
        """Set a cookie, as an attacker on the network or on a sibling host could without TLS."""
        host = origin_of(self.origin).partition("://")[2].partition(":")[0]
        self.cookies.append(Cookie(name, value, host, "/", False, True, "lax"))

    def link(self, text: str) -> str | None:
        """Return the URL of the link of the current page that has this text."""
        match = re.search(rf'<a href="([^"]+)"[^>]*>{re.escape(text)}</a>', self.page.text)
        return urljoin(self.page.url, html.unescape(match[1])) if match else None

    def pages(self) -> Iterator[Page]:
        """Yield the current page of a list, and those that follow it."""
        yield self.page
        while url := self.link("Next"):
            yield self.visit(url)

    @property
    def session_cookie(self) -> Cookie | None:
        """The cookie of a browser that is signed in."""
        return self.cookie("__Host-latchkey") or self.cookie("latchkey")

    def with_session_of(self, person: Any) -> Self:
        """Sign the browser in without the pages, for a set-up: at a tenth of the cost of `signed_in_as`."""
        token, session = one_time.new_token(), person.open_session()
        hashed = one_time.hash_token(token)
        queries.insert_browser_session(self._parts.db, token_hash=hashed, session_id=session.id)
        self.plant(SESSION, token)
        return self

    def typed(self, address: str, *, has_asked: bool = True) -> str:
        """Return the id of an address that this browser has typed, as in the URL of the page for its code."""
        if not self.cookie("latchkey_waiting"):
            self.plant("latchkey_waiting", one_time.new_token())
        cookie = self.cookie("latchkey_waiting")
        assert cookie
        columns: dict[str, Any] = {"address": address, "has_asked": has_asked, "lifetime": 3600}
        hashed = one_time.hash_token(cookie.value)
        return queries.keep_typed_address(self._parts.db, browser_hash=hashed, **columns).id

    def result_query(self, **values: str) -> str:
        """Return the query with which the service shows a result in this browser."""
        name = f"{'__Host-' if self.origin.startswith('https:') else ''}{VISIT}"
        cookie = self.cookie(name)
        assert cookie, "visit a page first"
        with self._app.test_request_context(headers={"Cookie": f"{name}={cookie.value}"}):
            return urlencode(signed_query(**values))

    def type_code(self, page: str, address: str, code: str) -> Page:
        """Send a code of an address to a page of this browser."""
        return self.send(f"/{page}/verify", typed=self.typed(address), code=code)

    def signed_in_as(self, person: Any) -> Self:
        self.visit("/sign-in")
        self.submit(email=person.email, password=PASSWORD)
        assert self.session_cookie
        return self

    def send(self, path: str, **fields: str) -> Page:
        """Submit a form with the token of the current page."""
        return self.post(
            self.origin + path, {"form_token": self.page.forms[0].fields["form_token"], **fields}
        )

    def submit(self, *, number: int | None = None, **fields: Any) -> Page:
        """Submit the first form that has the fields, or the one with this number."""
        if number is None:
            forms = self.page.forms
            number = next((n for n, form in enumerate(forms) if fields.keys() <= form.fields.keys()), 0)
        return super().submit(number=number, **fields)

    def link_to(self, path: str) -> str:
        """Return the URL of the first link of the current page that begins with a path and a query."""
        match = re.search(rf'href="([./]*{re.escape(html.escape(path))}[^"]*)"', self.page.text)
        assert match, f"no link leads to {path}"
        return urljoin(self.page.url, html.unescape(match[1]))

    def remove(self, kind: str) -> Page:
        """Follow the first link that removes something of a kind, and confirm it."""
        self.visit(self.link_to(f"account/remove?kind={kind}"))
        return self.press("account/remove")

    @property
    def passkey_options(self) -> dict[str, Any]:
        """The options that the page's script passes to the authenticator."""
        return json.loads(html.unescape(self.page.text.partition('data-options="')[2].partition('"')[0]))
