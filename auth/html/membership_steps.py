"""What a membership lacks in a session, and the page that gives it."""

import re
from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Any, NamedTuple

from auth.core.net.redirects import with_query
from auth.core.text.names import PREFIX
from auth.flows import organizations
from auth.html.redirects import COMPANY
from auth.rules import identities
from auth.web import callers
from auth.web.asked import Asked
from auth.web.context import latchkey
from sql import queries

_COMPANY_LINK = ("organizations", "give_sign_in")
# The page of an organization, or one below it.
_PAGE = re.compile(r"organizations/([a-z0-9-]+)(?:/.*)?")


class MembershipStep(NamedTuple):
    """What a membership lacks in a session: the name of its text in the table `organizations`, the table and
    name of a link's text, and the path of its page, or None if no page helps this user.
    """

    asks: str
    give: tuple[str, str]
    path: str | None


class MembershipSteps:
    """What memberships lack in a user's session. Reads the provider of the user's address once, if at all."""

    def __init__(self, person: "queries.SelectPerson | None") -> None:
        self._person = person
        self._standing = organizations.standing_of(person)

    def step(self, membership: Mapping[str, Any], next_page: str) -> MembershipStep | None:
        """Return what makes a membership count, as the user's session sees it; then `next_page` comes."""
        missing = organizations.missing_step(membership, self._standing)
        if missing == "organization_sign_in_needed":
            if self._provider not in membership["requires"]["providers"]:
                return MembershipStep("asks_sign_in_of_others", _COMPANY_LINK, None)
            return MembershipStep("asks_sign_in", _COMPANY_LINK, with_query(COMPANY, {"next": next_page}))
        if missing == "reauthentication_needed":
            page = self._page_of_sign_in(membership["requires"].get("providers"))
            if page is None:
                return MembershipStep("asks_sign_in_of_others", _COMPANY_LINK, None)
            again = ("organizations", "again")
            return MembershipStep("asks_again", again, with_query(page, {"next": next_page}))
        if missing == "insufficient_aal":
            link, page = _second_step()
            return MembershipStep("asks", link, with_query(page, {"next": next_page}) if page else None)
        return None

    def _page_of_sign_in(self, required: Sequence[str] | None) -> str | None:
        """Return the page of another sign-in. A session of the company is as old as the sign-in there."""
        if self._provider in (self._standing.providers if required is None else required):
            return COMPANY
        return "account/confirm" if required is None else None

    @cached_property
    def _provider(self) -> str | None:
        """The provider to which the page of a company leads the user."""
        if self._person is None or identities.refusal_of_administrator(self._person):
            return None
        row = queries.select_provider_of_user(latchkey.db, user_id=self._person.id)
        if row is None or organizations.is_provider_off(latchkey.settings, row):
            return None
        return f"{PREFIX}{row.id}"


def organization_asking_again(asked: Asked, next_page: str) -> str | None:
    """Return the name of the organization whose page comes next, if it asks the caller to sign in again."""
    page = _PAGE.fullmatch(next_page)
    if page is None:
        return None
    row = asked.admit_reader(queries.select_user(asked.db, **asked.caller_ids))
    standing = callers.standing_of(row, asked.caller)
    for each in organizations.listed(row.memberships):
        missing = organizations.missing_step(organizations.as_seen(each, standing), standing)
        if each["slug"] == page[1] and missing == "reauthentication_needed":
            return str(each["name"])
    return None


def _second_step() -> tuple[tuple[str, str], str | None]:
    """Return the text of a link to what gives a second step, and its page, None if the settings have none."""
    if latchkey.settings.mfa_enabled:
        return ("organizations", "give"), "second-step"
    passkeys = "account/passkeys/new" if latchkey.settings.offers_passkeys else None
    return ("account", "passkey_heading"), passkeys
