"""Visitors of our pages: simulated browsers at the application in this process."""

from typing import Any

from tests.support.cast import PASSWORD
from tests.support.links import SITE
from tests.support.user_agent import Cookie, Page, UserAgent, origin_of


class Visitor(UserAgent):
    """A browser at one application. Paths stand for URLs of the service."""

    def __init__(self, app: Any, origin: str = SITE, **options: Any) -> None:
        super().__init__({origin: app.test_client(use_cookies=False)}, **options)
        self.origin = origin

    def visit(self, url: str, **options: Any) -> Page:
        return super().visit(self.origin + url if url.startswith("/") else url, **options)

    def plant(self, name: str, value: str) -> None:
        """Set a cookie, as an attacker on the network or on a sibling host could without TLS."""
        host = origin_of(self.origin).partition("://")[2].partition(":")[0]
        self.cookies.append(Cookie(name, value, host, "/", False, True, "lax"))

    @property
    def session_cookie(self) -> Cookie | None:
        """The cookie of a browser that is signed in."""
        return self.cookie("latchkey")

    def signed_in_as(self, person: Any) -> "Visitor":
        self.visit("/sign-in")
        self.submit(email=person.email, password=PASSWORD)
        assert self.session_cookie
        return self

    def send(self, path: str, **fields: str) -> Page:
        """Submit a form with the token of the current page."""
        return self.post(
            self.origin + path, {"form_token": self.page.forms[0].fields["form_token"], **fields}
        )
