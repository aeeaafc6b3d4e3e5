"""The API of organizations, for members and for the service role key. `{name}` is an id or a short name."""

import json
from collections.abc import Callable

from flask import Blueprint, Response, jsonify
from flask.typing import ResponseReturnValue
from marshmallow.fields import Nested

from auth.extensions.organizations import access, invitations, lifecycle, lists, members
from auth.rules.organizations import ADMIN, OWNER, manages
from auth.web import Level, View, asks_more, audited, fields, guard, schemas, takes_metadata
from auth.web.application import JsonResponse, paginated
from auth.web.asked import current_asked
from auth.web.context import latchkey
from auth.web.declarations import Scope
from auth.web.input import canonical_id, read_body, read_query
from auth.web.limits import limited
from auth.web.schemas import MOST_EVENTS, PageQuery, bounds
from sql import queries

blueprint = Blueprint("organizations", __name__)

NewOrganization = schemas.Input.of(
    name=fields.OrganizationName(required=True),
    slug=fields.Slug(),
    owner=fields.Uuid(),
    app_metadata=fields.Metadata(),
)
_Requires = schemas.Input.of(
    aal=fields.Choice("aal1", "aal2"),
    own_provider=fields.Flag(),
    max_age=fields.SessionAge(allow_none=True),
)
_OrganizationChange = schemas.Reauthentication.of(
    name=fields.OrganizationName(),
    slug=fields.Slug(),
    requires=Nested(_Requires),
    app_metadata=fields.Metadata(),
)
Role = schemas.Input.of(role=fields.MemberRole(required=True))
_RoleBody = schemas.Reauthentication.of(role=fields.MemberRole(required=True))
_NewInvitation = schemas.Reauthentication.of(
    email=fields.Email(required=True), role=fields.MemberRole(required=True)
)
# `search` is the former name of `q`.
_ListQuery = PageQuery.of(q=fields.Text(), search=fields.Text())
_MembersQuery = PageQuery.of(q=fields.Text())


def changing(operation: str, scope: Scope | None = "organizations:write") -> Callable[[View], View]:
    """Admit tokens of sessions and the keys of operators, and count an act of a session.

    The view first finds the organization, and so refuses a session that has ended: errors of the body are for
    callers who may send it.
    """

    def decorate(view: View) -> View:
        limit = limited(operation, key=guard.caller_on_network, unless=guard.is_of_operator)
        admit = guard.access_token_or_operator(Level.AAL1, scope)
        return admit(limit(audited("change_refused")(view)))

    return decorate


reading = guard.access_token_or_operator(Level.AAL1, "organizations:read")


@blueprint.post("/organizations")
@takes_metadata
@changing("found_organization")
def create_organization() -> ResponseReturnValue:
    """Create an organization, whose owner the caller becomes."""
    if not guard.is_of_operator():
        current_asked().live_caller()
    return JsonResponse(lifecycle.create(current_asked(), read_body(NewOrganization)), 201)


@blueprint.get("/organizations")
@reading
def list_organizations() -> Response:
    """Return the caller's memberships, or for the service role key all organizations."""
    asked, query = current_asked(), read_query(_ListQuery)
    if access.is_operator(asked):
        row = lists.organizations(latchkey.db, q=query.get("q", query.get("search")), **bounds(query))
        return paginated(row.organizations, row.total, query)
    memberships, _ = access.memberships_and_invitations(asked)
    begin = bounds(query)["page_offset"]
    listed = memberships[begin : begin + query["per_page"]]
    return paginated(json.dumps(listed), len(memberships), query)


@blueprint.get("/organizations/<name>")
@reading
def get_organization(name: str) -> Response:
    return JsonResponse(access.find_admitted(current_asked(), name).object)


@blueprint.put("/organizations/<name>")
@takes_metadata
@changing("change_organization")
@asks_more
def update_organization(name: str) -> Response:
    organization = access.find(current_asked(), name)
    return JsonResponse(lifecycle.change(current_asked(), organization, read_body(_OrganizationChange)))


@blueprint.delete("/organizations/<name>")
@changing("change_organization")
@asks_more
def delete_organization(name: str) -> Response:
    organization = access.find(current_asked(), name)
    lifecycle.end(current_asked(), organization, read_body(schemas.Reauthentication))
    return Response(status=204)


@blueprint.get("/organizations/<name>/members")
@reading
def list_members(name: str) -> Response:
    """Return the members; to owners, admins and the key with their addresses."""
    organization, query = access.find_admitted(current_asked(), name), read_query(_MembersQuery)
    is_manager = organization.role is None or manages(organization.role)
    row = lists.members(
        latchkey.db, organization.id, q=query.get("q"), with_addresses=is_manager, **bounds(query)
    )
    return paginated(row.members, row.total, query)


@blueprint.put("/organizations/<name>/members/<user_id>")
@changing("change_member")
@asks_more
def update_member(name: str, user_id: str) -> Response:
    """Change the role of a member. The service role key also adds one."""
    organization = access.find(current_asked(), name)
    body, id = read_body(_RoleBody), canonical_id(user_id, "member.user_not_found")
    return jsonify(members.set_role(current_asked(), organization, id, body["role"], body))


@blueprint.delete("/organizations/<name>/members/<user_id>")
@changing("leave_organization")
def remove_member(name: str, user_id: str) -> Response:
    """Remove a member, or leave."""
    organization = access.find(current_asked(), name)
    members.remove(current_asked(), organization, canonical_id(user_id, "member.user_not_found"))
    return Response(status=204)


@blueprint.get("/organizations/<name>/audit")
@reading
def list_organization_audit(name: str) -> Response:
    """Return the entries of the audit log about an organization, newest first."""
    organization, query = access.find_admitted(current_asked(), name, OWNER), read_query(PageQuery)
    row = queries.list_audit_of_organization(
        latchkey.db, organization_id=organization.id, days=None, most=MOST_EVENTS, **bounds(query)
    )
    return paginated(row.entries, row.total, query)


@blueprint.get("/organizations/<name>/invitations")
@reading
def list_invitations(name: str) -> Response:
    organization = access.find_admitted(current_asked(), name, OWNER, ADMIN)
    row = queries.list_invitations(latchkey.db, organization_id=organization.id)
    return JsonResponse(f'{{"invitations": {row.invitations}}}')


@blueprint.post("/organizations/<name>/invitations")
@changing("invite_member")
@asks_more
def create_invitation(name: str) -> Response:
    """Invite an address, whether or not it has a user."""
    organization = access.find(current_asked(), name)
    body = read_body(_NewInvitation)
    invitation = invitations.invite(current_asked(), organization, body["email"], body["role"], body)
    return JsonResponse(invitation, 201)


@blueprint.delete("/organizations/<name>/invitations/<invitation_id>")
@changing("withdraw_invitation")
def withdraw_invitation(name: str, invitation_id: str) -> Response:
    organization = access.find(current_asked(), name)
    invitations.withdraw(current_asked(), organization, canonical_id(invitation_id, "invitation_not_found"))
    return Response(status=204)


@blueprint.get("/user/invitations")
@guard.access_token(Level.AAL1)
def list_own_invitations() -> Response:
    """Return the open invitations for the caller's proved address."""
    _, open_ones = access.memberships_and_invitations(current_asked())
    return jsonify(invitations=open_ones)


@blueprint.post("/user/invitations/<invitation_id>")
@guard.access_token(Level.AAL1)
@limited("answer_invitation", key=guard.caller_on_network)
@audited("change_refused")
def accept_invitation(invitation_id: str) -> Response:
    """Join by an invitation, and return the membership."""
    return jsonify(invitations.accept(current_asked(), canonical_id(invitation_id, "invitation_not_found")))


@blueprint.delete("/user/invitations/<invitation_id>")
@guard.access_token(Level.AAL1)
@limited("answer_invitation", key=guard.caller_on_network)
@audited("change_refused")
def decline_invitation(invitation_id: str) -> Response:
    invitations.decline(current_asked(), canonical_id(invitation_id, "invitation_not_found"))
    return Response(status=204)
