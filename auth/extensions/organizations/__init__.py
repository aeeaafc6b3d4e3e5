"""Organizations of users: members, roles and invitations, which every token of a member says."""

import json
import re
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from auth.core.settings import Settings
from auth.registry import Extension

if TYPE_CHECKING:
    from sql import queries


_PAGE = "organizations/[a-z0-9-]{1,63}"
# Its query is the way back, which the page checks.
_JOIN = rf"{_PAGE}/join(\?[!-~]+)?"


class Organizations(Extension):
    api: Sequence[str] = ("routes",)
    pages: Sequence[str] = (
        "pages.organization", "pages.members", "pages.inviting", "pages.history", "pages.settings",
        "pages.session_age", "pages.invitation",
    )  # fmt: skip
    sections = ("console",)
    navigation = ((37, "console/organizations", "Organizations"),)
    command = "organizations"

    def __init__(self, settings: Settings) -> None:
        super().__init__(settings)
        if settings.sso:
            self.api = ("routes", "sign_in_routes")
            self.pages = (*self.pages, "pages.sign_in", "pages.own_requirement")

    def next_pages(self) -> Sequence[tuple[str, str]]:
        # A segment may be a domain.
        return ((_JOIN, "{}"), (rf"{_PAGE}(/[a-z0-9-]+(\.[a-z0-9-]+)*)*", "account/{}"))

    def purpose_of(self, next_page: str) -> str | None:
        return "invitation" if re.fullmatch(_JOIN, next_page) else None

    def account_tabs(self, person: "queries.SelectPerson") -> Mapping[str, Any]:
        from auth.extensions.organizations.pages import organization

        return {"organizations": organization.account_tab(person)}

    def user_tabs(self, user_id: str) -> Mapping[str, Any]:
        from auth.extensions.organizations import console

        return {"organizations": console.memberships_of(user_id)}

    def data(self) -> Mapping[str, Any]:
        from auth.extensions.organizations import access
        from auth.web import guard
        from auth.web.asked import current_asked
        from sql import queries

        asked = current_asked()
        stored = queries.list_memberships_of_user(asked.db, user_id=guard.caller_id()).memberships
        return {
            "organizations": json.loads(stored),
            "organization_invitations": access.memberships_and_invitations(asked)[1],
        }


EXTENSION = Organizations
