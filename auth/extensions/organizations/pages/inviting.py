"""Pages on which owners and admins invite."""

from flask import Blueprint, Response

from auth.extensions.organizations import access, invitations
from auth.extensions.organizations.access import VisibleOrganization
from auth.extensions.organizations.pages import PATH, changing, form_page, hiding, roles_of, showing
from auth.extensions.organizations.routes import Role
from auth.html.page import redirect_to_own
from auth.html.problems import Problem
from auth.rules.organizations import ADMIN, MEMBER, OWNER, may_manage
from auth.web import Level, fields
from auth.web.asked import current_asked
from auth.web.context import latchkey
from auth.web.input import canonical_id, read_form
from sql import queries

blueprint = Blueprint("organization_invitations", __name__)

_InvitationForm = Role.of(email=fields.TypedEmail(required=True))


@blueprint.get("/account/organizations/<slug>/invite")
@showing(Level.PROOF)
def show_invite(slug: str, problem: Problem | None = None) -> Response:
    organization = access.find_admitted(current_asked(), slug, OWNER, ADMIN)
    is_of_member = problem is not None and problem.error_code == "already_member"
    member_id = _managed_id(organization, read_form(_InvitationForm)["email"]) if is_of_member else None
    roles = roles_of(organization, MEMBER)
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


def _managed_id(organization: VisibleOrganization, email: str) -> str | None:
    """Return the id of the member who has proved an address, None for one whom the caller may not change."""
    row = queries.select_invited_address(latchkey.db, organization_id=organization.id, email=email)
    return row.member_id if may_manage(organization.role, row.member_role, row.member_role) else None
