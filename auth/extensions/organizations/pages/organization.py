"""The organizations of the account, and the page of each.

The API has /organizations/NAME, so the pages are below /account.
"""

import json
from typing import Any

from flask import Blueprint, Response

from auth.extensions.organizations import access, lifecycle, lists
from auth.extensions.organizations.access import VisibleOrganization
from auth.extensions.organizations.pages import (
    PATH,
    changing,
    name_of,
    notice,
    organization_shown,
    role_title,
    showing,
)
from auth.flows.facts import PersonFacts
from auth.flows.organizations import may_found
from auth.html.browser_sessions import signed_in
from auth.html.destinations import destination
from auth.html.membership_steps import MembershipSteps
from auth.html.page import ago, page, redirect_to_own
from auth.html.problems import Problem, problem_of_redirect
from auth.rules.organizations import manages, may_manage
from auth.web import Level, fields, g
from auth.web.application import redirect
from auth.web.asked import current_asked
from auth.web.context import latchkey
from auth.web.input import check, read_form, read_query
from auth.web.schemas import Input, bounds
from sql import queries

blueprint = Blueprint("organizations", __name__)

_MOST = 50

_NewForm = Input.of(name=fields.OrganizationName(required=True), slug=fields.TypedText(load_default=""))
_Slug = Input.of(slug=fields.Slug(required=True))
_PageQuery = Input.of(page=fields.PageNumber())


def shown_memberships(person: PersonFacts) -> dict[str, Any]:
    """Return the memberships and the open invitations for the account page."""
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
    return redirect_to_own(f"{PATH}/{organization['slug']}", "organization_created")


@blueprint.get("/account/organizations/<slug>")
@showing(Level.AAL2)
def show_organization(slug: str) -> Response:
    organization, number = access.find_admitted(current_asked(), slug), read_query(_PageQuery)["page"]
    is_manager = manages(organization.role)
    place = bounds({"page": number, "per_page": _MOST})
    listed = lists.members(latchkey.db, organization.id, q=None, with_addresses=is_manager, **place)
    open_ones = json.loads(queries.list_invitations(latchkey.db, organization_id=organization.id).invitations)
    return page(
        "organizations/organization.html",
        script=True,
        here=f"/{PATH}/{slug}",
        organization=organization_shown(organization),
        manages=is_manager,
        members=[_member(organization, each) for each in json.loads(listed.members)],
        following=number + 1 if listed.total > number * _MOST else None,
        invitations=[_shown_invitation(organization, each) for each in open_ones] if is_manager else [],
        notice=notice(),
        problem=problem_of_redirect(),
    )


def _member(organization: VisibleOrganization, member: dict[str, Any]) -> dict[str, Any]:
    return member | {
        "shown": name_of(member),
        "title": role_title(member["role"], begins=True),
        "is_self": member["user_id"] == g.caller.user_id,
        "may_manage": may_manage(organization.role, member["role"], member["role"]),
    }


def _shown_invitation(organization: VisibleOrganization, invitation: dict[str, Any]) -> dict[str, Any]:
    return invitation | {
        "title": role_title(invitation["role"], begins=True),
        "sent": ago(invitation["created_at"]),
        "may_manage": may_manage(organization.role, invitation["role"], None),
    }
