"""Customers' sign-in: OpenID providers in the database, each for the addresses of its own domains."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qsl

from auth.registry import Extension, Waiting

if TYPE_CHECKING:
    from auth.core.checks import Check
    from auth.core.providers.client import Provider
    from sql import queries


class Sso(Extension):
    api = ("routes",)
    pages = ("pages",)
    sections = ("console",)
    navigation = ((35, "console/providers", "Providers"),)
    command = "providers"

    def find_provider(self, name: str, *, is_test: bool) -> "Provider | None":
        from auth.extensions.sso import lookup
        from auth.web.context import latchkey

        return lookup.find(latchkey, name, is_test=is_test)

    def provider_of(self, email: str) -> str | None:
        from auth.extensions.sso import lookup
        from auth.web.context import latchkey

        row = lookup.of_address(latchkey, email)
        return row.identifier if row else None

    def next_pages(self) -> Sequence[tuple[str, str]]:
        from auth.html.redirects import COMPANY

        # Its query is the way back to the application, which the page checks.
        return ((rf"{COMPANY}(\?[!-~]+)?", "{}"),)

    def waiting_behind(self, next_page: str) -> Waiting | None:
        from auth.html.page import waiting_behind
        from auth.html.redirects import COMPANY

        page, _, query = next_page.partition("?")
        after = dict(parse_qsl(query)).get("next", "") if page == COMPANY else ""
        # Behind one page: a URL may repeat it hundreds of times.
        return None if not after or after.startswith(COMPANY) else waiting_behind(after)

    def account_tabs(self, person: "queries.SelectPerson") -> Mapping[str, Any]:
        from auth.extensions.sso import company
        from auth.web.asked import current_asked

        return {"company": company.offer(current_asked(), person)}

    @staticmethod
    def checks() -> "Sequence[Check]":
        from auth.extensions.sso.checks import CHECKS

        return CHECKS


EXTENSION = Sso
