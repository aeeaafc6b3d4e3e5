"""Whom a requirement of an organization shuts out: the facts that its page shows before the button."""

import json
from typing import Any, Literal, TypeAlias

from flask import Response

from auth.extensions.organizations.access import VisibleOrganization
from auth.extensions.organizations.pages import PATH, address_below, name_of, object_of
from auth.extensions.organizations.pages.paging import ListPage, bounds_of
from auth.flows.organizations import as_seen, standing_of
from auth.html.membership_steps import MembershipStep, MembershipSteps
from auth.html.page import page, redirect_to_own, text
from auth.web import g
from auth.web.asked import current_asked
from auth.web.schemas import Bounds
from sql import queries

LackingMembers: TypeAlias = "queries.ListWithoutFactor | queries.ListWithoutOwnSignIn"

# What the page of a requirement offers: the press that makes or lifts it, or a way to what an owner lacks for
# the press, a step of the own session or a provider that is on.
Offer = Literal["require", "lift", "step", "provider"]

# The members that a page looks at, and the first names on the page of a requirement.
MOST_MEMBERS, _FIRST_NAMES = 10_000, 10


class MemberBounds(Bounds):
    most: int


def first_names() -> MemberBounds:
    return {"most": MOST_MEMBERS, "page_size": _FIRST_NAMES, "page_offset": 0}


def on_page(number: int) -> MemberBounds:
    return {"most": MOST_MEMBERS, **bounds_of(number)}


def show_members(organization: VisibleOrganization, act: str, row: LackingMembers, number: int) -> Response:
    """Show a page of the members whom the requirement `act` shuts out, or redirect to the last page."""
    list_page = ListPage(number, row.lacking)
    path = f"{PATH}/{organization.slug}/{act}/members"
    if number > list_page.pages:
        return redirect_to_own(f"{path}{list_page.query_of(list_page.pages)}")
    return page(
        "organizations/shut_out.html",
        script=True,
        here=f"/{path}",
        organization=object_of(organization),
        act=act,
        counts=counts_of(row),
        names=names_of(row),
        list_page=list_page,
    )


def counts_of(row: LackingMembers) -> dict[str, Any]:
    """Return the variables of texts with counts. `has_more` is whether there are members beyond the bound."""
    return {"n": row.lacking, "members": row.members, "has_more": row.members > MOST_MEMBERS}


def names_of(row: LackingMembers) -> list[dict[str, Any]]:
    """Return the members of a list with what it shows: the name, and the address and the cause below it."""
    members = json.loads(row.listed)
    for member in members:
        cause = member.get("cause")
        member["title"] = name_of(member)
        member["address"] = address_below(member)
        member["reason"] = text("organization_settings", f"cause_{cause}") if cause else None
        member["is_self"] = member["user_id"] == g.caller.user_id
    return members


def step_of_caller(
    organization: VisibleOrganization, requires: dict[str, Any], next_page: str
) -> MembershipStep | None:
    """Return what the caller's own membership would lack once the organization requires this."""
    membership = {"id": organization.id, "role": organization.role, "requires": requires}
    person = current_asked().live_caller()
    return MembershipSteps(person).step(as_seen(membership, standing_of(person)), next_page)
