"""Organizations of the account: memberships and invitations, and what owners and admins do.

The API has /organizations/NAME, so the pages are below /account.
"""

import functools
import json
from collections.abc import Callable, Iterable
from typing import Any

from flask import Blueprint, Response, request
from flask.typing import ResponseReturnValue
from markupsafe import Markup

from auth.extensions.organizations import access, invitations, lifecycle, members
from auth.extensions.organizations.access import VisibleOrganization
from auth.extensions.organizations.routes import Role
from auth.flows.facts import PersonFacts
from auth.flows.memberships import departure_of
from auth.flows.organizations import may_found
from auth.html import forms
from auth.html.browser_sessions import signed_in
from auth.html.destinations import destination
from auth.html.membership_steps import MembershipSteps
from auth.html.page import address, ago, application, has_text, page, redirect_to_own, text
from auth.html.problems import Problem, form, problem_of_redirect
from auth.rules.organizations import ADMIN, MEMBER, OWNER, manages, may_manage
from auth.web import Level, View, audited, fields, g, guard
from auth.web.application import redirect
from auth.web.asked import current_asked
from auth.web.context import latchkey
from auth.web.errors import ApiError, found
from auth.web.input import canonical_id, check, read_form, read_query
from auth.web.schemas import Input, bounds
from sql import queries

blueprint = Blueprint("organizations", __name__)

PATH = "account/organizations"
_MOST = 50
# Refusals that are one page, which does not tell whether the organization exists.
_HIDDEN = {
    "organization_not_found", "organization.insufficient_permissions", "member.user_not_found",
    "user_not_found", "invitation_not_found", "domain_not_found", "custom_provider_not_found",
}  # fmt: skip

_NewForm = Input.of(name=fields.OrganizationName(required=True), slug=fields.TypedText(load_default=""))
_Slug = Input.of(slug=fields.Slug(required=True))
_NameForm = Input.of(name=fields.OrganizationName(required=True))
_InvitationForm = Role.of(email=fields.TypedEmail(required=True))
_RequirementForm = Input.of(aal=fields.Choice("aal1", "aal2", required=True))
_PageQuery = Input.of(page=fields.PageNumber())


def showing(level: Level) -> Callable[[View], View]:
    """Return a decorator of the pages of an organization, for signed-in users who may see them."""
    return lambda view: signed_in(level)(hiding(view))


def changing(operation: str, *, shown: View | None = None, level: Level) -> Callable[[View], View]:
    """Return a decorator of the views that such a page sends a form to."""
    return lambda view: form(operation, shown=shown, level=level)(audited("change_refused")(view))


def hiding(view: View) -> View:
    """Show one page for all that the caller may not see."""

    @functools.wraps(view)
    def shown(*args: object, **kwargs: object) -> ResponseReturnValue:
        try:
            return view(*args, **kwargs)
        except ApiError as error:
            if error.key in _HIDDEN:
                raise ApiError("not_found", reason=error.error_code) from None
            raise

    return shown


# The account.


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


def role_title(role: str, *, begins: bool = False) -> Markup:
    """Return our text for a role that we know, with a capital if it `begins` a line; else the word itself."""
    if role not in (OWNER, ADMIN, MEMBER):
        return application(role)
    title = text("organizations", role)
    return title[:1].upper() + title[1:] if begins else title


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


# The organization.


@blueprint.get("/account/organizations/<slug>")
@showing(Level.AAL2)
def show_organization(slug: str) -> Response:
    organization, number = access.find_admitted(current_asked(), slug), read_query(_PageQuery)["page"]
    is_manager = manages(organization.role)
    place = bounds({"page": number, "per_page": _MOST})
    listed = queries.list_members(
        latchkey.db, organization_id=organization.id, with_addresses=is_manager, **place
    )
    open_ones = json.loads(queries.list_invitations(latchkey.db, organization_id=organization.id).invitations)
    return page(
        "organizations/organization.html",
        script=True,
        here=f"/{PATH}/{slug}",
        organization=_shown(organization),
        manages=is_manager,
        members=[_member(organization, each) for each in json.loads(listed.members)],
        following=number + 1 if listed.total > number * _MOST else None,
        invitations=[_shown_invitation(organization, each) for each in open_ones] if is_manager else [],
        notice=notice(),
        problem=problem_of_redirect(),
    )


@blueprint.get("/account/organizations/<slug>/name")
@showing(Level.AAL2)
def show_name(slug: str, problem: Problem | None = None) -> Response:
    return form_page("name", access.find_admitted(current_asked(), slug, OWNER), problem)


@blueprint.post("/account/organizations/<slug>/name")
@changing("change_organization", shown=show_name, level=Level.AAL2)
def submit_name(slug: str) -> Response:
    asked, name = current_asked(), read_form(_NameForm)["name"].strip()
    lifecycle.change(asked, access.find(asked, slug), {"name": name})
    return redirect_to_own(f"{PATH}/{slug}#settings", "organization_renamed")


@blueprint.get("/account/organizations/<slug>/requirement")
@showing(Level.PROOF)
def show_requirement(slug: str, problem: Problem | None = None) -> Response:
    """Say who would lose access before the requirement is made."""
    asked = current_asked()
    organization = access.find_admitted(asked, slug, OWNER)
    if asked.caller.aal < "aal2":
        # The owner who requires a second step must have given one.
        raise ApiError("insufficient_aal")
    access.require_proof(asked, organization)
    counts = queries.count_members(latchkey.db, organization_id=organization.id)
    return form_page("requirement", organization, problem, counts=counts)


@blueprint.post("/account/organizations/<slug>/requirement")
@changing("change_organization", shown=show_requirement, level=Level.PROOF)
def submit_requirement(slug: str) -> Response:
    asked, aal = current_asked(), read_form(_RequirementForm)["aal"]
    lifecycle.change(asked, access.find(asked, slug), {"requires": {"aal": aal}})
    return redirect_to_own(f"{PATH}/{slug}#settings", f"requirement_{aal}")


@blueprint.get("/account/organizations/<slug>/end")
@showing(Level.PROOF)
def show_end(slug: str, problem: Problem | None = None) -> Response:
    organization = access.find_admitted(current_asked(), slug, OWNER)
    access.require_proof(current_asked(), organization)
    return form_page("end", organization, problem)


@blueprint.post("/account/organizations/<slug>/end")
@changing("change_organization", shown=show_end, level=Level.PROOF)
def submit_end(slug: str) -> Response:
    asked = current_asked()
    lifecycle.end(asked, access.find(asked, slug), {})
    return redirect_to_own("account#organizations", "organization_ended")


# Members.


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
    roles = _roles(organization, member.role)
    return form_page(
        "member", organization, problem, member=member, who=_name_of(member._asdict()), roles=roles
    )


@blueprint.post("/account/organizations/<slug>/members/<user_id>")
@changing("change_member", shown=show_member, level=Level.PROOF)
def submit_role(slug: str, user_id: str) -> Response:
    asked, role, id = current_asked(), read_form(Role)["role"], canonical_id(user_id, "not_found")
    members.set_role(asked, access.find(asked, slug), id, role, {})
    return redirect_to_own(f"{PATH}/{slug}", "member_changed")


@blueprint.get("/account/organizations/<slug>/members/<user_id>/remove")
@showing(Level.AAL2)
def show_removal(slug: str, user_id: str, problem: Problem | None = None) -> Response:
    asked = current_asked()
    organization = access.find_admitted(asked, slug, OWNER, ADMIN)
    member = _managed(organization, user_id)
    departure = departure_of(asked, asked.db, member.id, organization.id)
    who = _name_of(member._asdict())
    return form_page("remove", organization, problem, member=member, who=who, departure=departure)


@blueprint.post("/account/organizations/<slug>/members/<user_id>/remove")
@changing("leave_organization", shown=show_removal, level=Level.AAL2)
def submit_removal(slug: str, user_id: str) -> Response:
    asked, id = current_asked(), canonical_id(user_id, "not_found")
    members.remove(asked, access.find(asked, slug), id)
    return redirect_to_own(f"{PATH}/{slug}", "member_removed")


# Invitations of the organization.


@blueprint.get("/account/organizations/<slug>/invite")
@showing(Level.PROOF)
def show_invite(slug: str, problem: Problem | None = None) -> Response:
    organization = access.find_admitted(current_asked(), slug, OWNER, ADMIN)
    is_of_member = problem is not None and problem.error_code == "already_member"
    member_id = _managed_id(organization, read_form(_InvitationForm)["email"]) if is_of_member else None
    roles = _roles(organization, MEMBER)
    return form_page("invite", organization, problem, roles=roles, role=MEMBER, member_id=member_id)


@blueprint.post("/account/organizations/<slug>/invite")
@changing("invite_member", shown=show_invite, level=Level.PROOF)
def submit_invite(slug: str) -> Response:
    asked, values = current_asked(), read_form(_InvitationForm)
    invitations.invite(asked, access.find(asked, slug), values["email"], values["role"], {})
    return redirect_to_own(f"{PATH}/{slug}#invitations", "member_invited")


@blueprint.post("/account/organizations/<slug>/invitations/<invitation_id>/withdraw")
@changing("withdraw_invitation", level=Level.AAL2)
@hiding
def submit_withdrawal(slug: str, invitation_id: str) -> Response:
    asked, id = current_asked(), canonical_id(invitation_id, "not_found")
    invitations.withdraw(asked, access.find(asked, slug), id)
    return redirect_to_own(f"{PATH}/{slug}#invitations", "invitation_withdrawn")


# Functions that the pages share.


def notice() -> Markup | None:
    """Return the message of our redirect to this page, if any."""
    done = forms.signed_value("done")
    return text("done", done) if has_text("done", done) else None


def form_page(
    name: str, organization: VisibleOrganization, problem: Problem | None, **values: Any
) -> Response:
    """Show a page with one form about an organization."""
    values |= {"organization": _shown(organization), "problem": problem}
    return page(f"organizations/{name}.html", script=True, here=request.path, **values)


def _shown(organization: VisibleOrganization) -> dict[str, Any]:
    return json.loads(organization.object) | {"role": organization.role}


def _managed(organization: VisibleOrganization, user_id: str) -> "queries.SelectMemberOf":
    """Return a member whom the caller may change."""
    id = canonical_id(user_id, "member.user_not_found")
    row = queries.select_member_of(latchkey.db, organization_id=organization.id, user_id=id)
    member = found(row, "member.user_not_found")
    if not may_manage(organization.role, member.role, member.role):
        raise ApiError("member.user_not_found")
    return member


def _managed_id(organization: VisibleOrganization, email: str) -> str | None:
    """Return the id of the member who has proved an address, None for one whom the caller may not change."""
    row = queries.select_invited_address(latchkey.db, organization_id=organization.id, email=email)
    return row.member_id if may_manage(organization.role, row.member_role, row.member_role) else None


def _member(organization: VisibleOrganization, member: dict[str, Any]) -> dict[str, Any]:
    return member | {
        "shown": _name_of(member),
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


def _name_of(member: dict[str, Any]) -> Markup:
    if name := member.get("name"):
        return application(name)
    email = member.get("email")
    return address(email) if email else text("organizations", "unnamed")


def _roles(organization: VisibleOrganization, present: str) -> Iterable[tuple[str, Markup]]:
    """Return the roles that the caller may give, with their titles: ours, and those in use."""
    used = queries.select_roles(latchkey.db, organization_id=organization.id).roles
    words = dict.fromkeys([OWNER, ADMIN, MEMBER, present, *used])
    return [
        (word, role_title(word, begins=True)) for word in words if may_manage(organization.role, None, word)
    ]
