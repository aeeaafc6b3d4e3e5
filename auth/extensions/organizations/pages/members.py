"""Pages about a member of an organization: the role, the removal, and *Leave*."""

from flask import Blueprint, Response

from auth.extensions.organizations import access, members
from auth.extensions.organizations.access import VisibleOrganization
from auth.extensions.organizations.pages import (
    PATH,
    address_below,
    changing,
    form_page,
    name_of,
    roles_of,
    showing,
)
from auth.extensions.organizations.pages.paging import place_in_members
from auth.extensions.organizations.pages.roles import RoleForm, chosen_role
from auth.flows.memberships import departure_of
from auth.html.page import redirect_to_own
from auth.html.problems import Problem
from auth.rules.organizations import ADMIN, OWNER, may_manage
from auth.web import Level, guard
from auth.web.asked import current_asked
from auth.web.context import latchkey
from auth.web.errors import ApiError, found
from auth.web.input import canonical_id, read_form
from sql import queries

blueprint = Blueprint("organization_members", __name__)


@blueprint.get("/account/organizations/<slug>/leave")
@showing(Level.AAL2)
def show_leave(slug: str, problem: Problem | None = None) -> Response:
    asked = current_asked()
    organization = access.find(asked, slug)
    departure = departure_of(asked, asked.db, asked.caller.user_id, organization.id)
    return form_page("leave", organization, problem, departure=departure)


@blueprint.post("/account/organizations/<slug>/leave")
@changing("leave_organization", shown=show_leave, level=Level.AAL2)
def submit_leave(slug: str) -> Response:
    asked = current_asked()
    members.remove(asked, access.find(asked, slug), guard.caller_id())
    return redirect_to_own("account#organizations", "organization_left")


@blueprint.get("/account/organizations/<slug>/members/<user_id>")
@showing(Level.PROOF)
def show_member(slug: str, user_id: str, problem: Problem | None = None) -> Response:
    asked = current_asked()
    organization = access.find_admitted(asked, slug, OWNER, ADMIN)
    member = _managed(organization, user_id)
    if organization.role == OWNER:
        # An owner may make others owners and admins.
        access.require_proof(asked, organization)
    columns = member._asdict()
    who, below = name_of(columns), address_below(columns)
    roles = roles_of(organization, member.role)
    place = place_in_members()
    return form_page(
        "member", organization, problem, member=member, who=who, below=below, roles=roles, place=place
    )


@blueprint.post("/account/organizations/<slug>/members/<user_id>")
@changing("change_member", shown=show_member, level=Level.PROOF)
def submit_role(slug: str, user_id: str) -> Response:
    asked, form, id = current_asked(), read_form(RoleForm), canonical_id(user_id, "not_found")
    organization = access.find(asked, slug)
    members.set_role(asked, organization, id, chosen_role(organization, form), {})
    return redirect_to_own(f"{PATH}/{slug}{place_in_members()}", "member_changed")


@blueprint.get("/account/organizations/<slug>/members/<user_id>/remove")
@showing(Level.AAL2)
def show_removal(slug: str, user_id: str, problem: Problem | None = None) -> Response:
    asked = current_asked()
    organization = access.find_admitted(asked, slug, OWNER, ADMIN)
    member = _managed(organization, user_id)
    departure = departure_of(asked, asked.db, member.id, organization.id)
    who, place = name_of(member._asdict()), place_in_members()
    return form_page(
        "remove", organization, problem, member=member, who=who, departure=departure, place=place
    )


@blueprint.post("/account/organizations/<slug>/members/<user_id>/remove")
@changing("leave_organization", shown=show_removal, level=Level.AAL2)
def submit_removal(slug: str, user_id: str) -> Response:
    asked, id = current_asked(), canonical_id(user_id, "not_found")
    members.remove(asked, access.find(asked, slug), id)
    return redirect_to_own(f"{PATH}/{slug}{place_in_members()}", "member_removed")


def _managed(organization: VisibleOrganization, user_id: str) -> "queries.SelectMemberOf":
    """Return a member whom the caller may change."""
    id = canonical_id(user_id, "member.user_not_found")
    row = queries.select_member_of(latchkey.db, organization_id=organization.id, user_id=id)
    member = found(row, "member.user_not_found")
    if not may_manage(organization.role, member.role, member.role):
        raise ApiError("member.user_not_found")
    return member
