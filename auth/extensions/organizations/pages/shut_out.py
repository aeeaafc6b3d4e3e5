"""Whom a requirement of an organization shuts out: the facts that its page shows before the button."""

import json
from typing import Any, TypeAlias, TypedDict

from auth.extensions.organizations.access import VisibleOrganization
from auth.extensions.organizations.pages import name_of
from auth.extensions.organizations.pages.paging import bounds_of
from auth.flows.organizations import as_seen
from auth.html.membership_steps import MembershipStep, MembershipSteps
from auth.html.page import address, text
from auth.web import g
from auth.web.asked import current_asked
from sql import queries

LackingMembers: TypeAlias = "queries.ListWithoutFactor | queries.ListWithoutOwnSignIn"

# The members that a page looks at, and the first names on the page of a requirement.
MOST_MEMBERS, _FIRST_NAMES = 10_000, 10


class Bounds(TypedDict):
    most: int
    page_size: int
    page_offset: int


def first_names() -> Bounds:
    return {"most": MOST_MEMBERS + 1, "page_size": _FIRST_NAMES, "page_offset": 0}


def on_page(number: int) -> Bounds:
    return {"most": MOST_MEMBERS + 1, **bounds_of(number)}


def counts_of(row: LackingMembers) -> dict[str, Any]:
    """Return the variables of texts with counts. `is_more` is whether there are members beyond the bound."""
    return {"n": row.lacking, "members": row.members, "is_more": row.members > MOST_MEMBERS}


def names_of(row: LackingMembers) -> list[dict[str, Any]]:
    """Return the members of a list with what it shows: the name, and the address and the cause below it."""
    members = json.loads(row.listed)
    for member in members:
        cause = member.get("cause")
        member["title"] = name_of(member)
        member["address"] = address(member["email"]) if member.get("name") and member.get("email") else None
        member["reason"] = text("organization_settings", f"cause_{cause}") if cause else None
        member["is_self"] = member["user_id"] == g.caller.user_id
    return members


def step_of_caller(
    organization: VisibleOrganization, requires: dict[str, Any], next_page: str
) -> MembershipStep | None:
    """Return what the caller's own membership would lack once the organization requires this."""
    membership = {"id": organization.id, "role": organization.role, "requires": requires}
    seen = as_seen(membership, organization.aal or "", g.caller.providers)
    return MembershipSteps(current_asked().live_caller()).step(seen, next_page)
