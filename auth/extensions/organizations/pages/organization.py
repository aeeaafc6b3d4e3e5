"""The organizations of the account, and the page of each.

The API has /organizations/NAME, so the pages are below /account.
"""

import json
from functools import partial
from operator import itemgetter
from typing import Any

from flask import Blueprint, Response

from auth.extensions.organizations import access, lifecycle, lists
from auth.extensions.organizations.access import VisibleOrganization
from auth.extensions.organizations.pages import (
    PATH,
    address_below,
    age_in_words,
    changing,
    name_of,
    notice,
    object_of,
    role_title,
    showing,
)
from auth.extensions.organizations.pages.paging import ListPage, MembersQuery, bounds_of
from auth.extensions.organizations.pages.way_back import redirect_and_keep, way_back
from auth.flows.facts import PersonFacts
from auth.flows.organizations import may_found
from auth.html.browser_sessions import signed_in
from auth.html.destinations import destination
from auth.html.membership_steps import MembershipSteps
from auth.html.page import expires, page, redirect_to_own
from auth.html.problems import Problem, problem_of_redirect
from auth.rules.organizations import MOST_INVITATIONS, manages, may_manage
from auth.web import Level, fields, g
from auth.web.application import redirect
from auth.web.asked import current_asked
from auth.web.context import latchkey
from auth.web.input import check, read_form, read_query
from auth.web.schemas import Input
from sql import queries

blueprint = Blueprint("organizations", __name__)

# With fewer members, the page has no search.
_MOST_IN_SIGHT = 10

_NewForm = Input.of(name=fields.OrganizationName(required=True), slug=fields.TypedText(load_default=""))
_Slug = Input.of(slug=fields.Slug(required=True))


def account_tab(person: PersonFacts) -> dict[str, Any]:
    """Return the memberships and the open invitations of the account page."""
    memberships, open_ones = access.memberships_and_invitations(current_asked())
    steps = MembershipSteps(person)
    return {
        "memberships": [
            each | {"step": steps.step(each, f"organizations/{each['slug']}")} for each in memberships
        ],
        "invitations": open_ones,
        "may_create": may_found(latchkey.settings, person),
        "role_title": role_title,
    }


@blueprint.get("/account/organizations/new")
@signed_in(Level.AAL2)
def show_new(problem: Problem | None = None) -> Response:
    to = destination()
    return page(
        "organizations/new.html", script=True, here=f"/{to.path(f'{PATH}/new')}", problem=problem, to=to
    )


@blueprint.post("/account/organizations/new")
@changing("found_organization", shown=show_new, level=Level.AAL2)
def submit_new() -> Response:
    values = read_form(_NewForm)
    body = {"name": values["name"].strip()}
    if values["slug"]:
        body |= check(_Slug, {"slug": values["slug"]})
    organization = json.loads(lifecycle.create(current_asked(), body))
    if next_url := destination().next_url():
        return redirect(next_url)
    slug = organization["slug"]
    return redirect_and_keep(f"{PATH}/{slug}", slug, "organization_created")


@blueprint.get("/account/organizations/<slug>")
@showing(Level.AAL2)
def show_organization(slug: str, problem: Problem | None = None) -> Response:
    if problem is None and destination().redirect_to:
        # The page has a URL without the way back, which its links and forms would have to pass on.
        return redirect_and_keep(f"{PATH}/{slug}", slug)
    organization, query = access.find_admitted(current_asked(), slug), read_query(MembersQuery)
    q, number, is_manager = query["q"], query["page"], manages(organization.role)
    list_members = partial(lists.members, latchkey.db, organization.id, with_addresses=is_manager)
    result = list_members(q=q or None, **bounds_of(number))
    list_page = ListPage(number, result.total, {"q": q} if q else {}, result.has_more)
    if number > list_page.pages:
        # A member has been removed since, or the search is another one.
        return redirect_to_own(f"{PATH}/{slug}{list_page.query_of(list_page.pages)}")
    # A search does not change how many members there are.
    total = list_members(q=None, page_size=0, page_offset=0).total if q else result.total
    row = queries.list_invitations(latchkey.db, organization_id=organization.id) if is_manager else None
    # Those that expire first come first.
    open_ones = sorted(json.loads(row.invitations) if row else [], key=itemgetter("expires_at"))
    return page(
        "organizations/organization.html",
        script=True,
        here=f"/{PATH}/{slug}",
        organization=object_of(organization),
        max_age=age_in_words(seconds) if (seconds := organization.requires.get("max_age")) else None,
        manages=is_manager,
        members=[_member(organization, each) for each in json.loads(result.members)],
        total=total,
        q=q,
        is_searchable=bool(q) or total > _MOST_IN_SIGHT,
        list_page=list_page,
        invitations=[_invitation(organization, each) for each in open_ones],
        most_invitations=MOST_INVITATIONS,
        notice=notice(),
        problem=problem or problem_of_redirect(),
        back=way_back(slug),
    )


def _member(organization: VisibleOrganization, member: dict[str, Any]) -> dict[str, Any]:
    return member | {
        "who": name_of(member),
        "address": address_below(member),
        "title": role_title(member["role"], begins=True),
        "is_self": member["user_id"] == g.caller.user_id,
        "may_manage": may_manage(organization.role, member["role"], member["role"]),
    }


def _invitation(organization: VisibleOrganization, invitation: dict[str, Any]) -> dict[str, Any]:
    return invitation | {
        "title": role_title(invitation["role"], begins=True),
        "expires": expires(invitation["expires_at"]),
        "may_manage": may_manage(organization.role, invitation["role"], None),
    }
