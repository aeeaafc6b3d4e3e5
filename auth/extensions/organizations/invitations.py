"""Acts on invitations: owners and admins invite and withdraw, the invited user accepts or declines."""

import uuid

from auth.core import constants
from auth.core.json_bodies import JsonObject
from auth.core.text import names
from auth.extensions.organizations import access
from auth.extensions.organizations.access import VisibleOrganization
from auth.flows.facts import PersonFacts
from auth.flows.memberships import record_added
from auth.flows.messages import outgoing
from auth.flows.organizations import Member, facts_of, record, refuse_owner_by_key, tell_owners
from auth.flows.sign_in.reauthentication import admit_caller
from auth.rules import organizations
from auth.rules.organizations import ADMIN, OWNER
from auth.web.asked import Asked
from auth.web.errors import ApiError, found
from sql import acts, queries


def invite(asked: Asked, organization: VisibleOrganization, email: str, role: str, body: JsonObject) -> str:
    """Invite an address, but not a member's. The same one again gets the new role, and seven days."""
    organization = access.admit(asked, organization, OWNER, ADMIN)
    if organization.role and not organizations.may_manage(organization.role, None, role):
        raise ApiError("organization.insufficient_permissions")
    wanted = [access.CHANGE] if organizations.manages(role) else []
    proof = access.give_proof(asked, organization, body, *wanted)
    quota = _take_quota(asked, email)
    with access.begin(asked) as act:
        facts, caller = access.lock(asked, act, organization, *wanted, proof=proof)
        before = queries.select_invited_address(act, organization_id=facts.id, email=email)
        open_role = before.role if before.expires_at and before.expires_at > facts.now else None
        refusal = organizations.refusal_of_invitation(
            facts.actor_role, open_role, role, facts.invitations, is_member=before.member_id is not None
        )
        if refusal:
            raise ApiError(refusal)
        refuse_owner_by_key(asked, act, facts.id, role)
        invitation = queries.write_invitation(
            act,
            id=str(uuid.uuid4()),
            organization_id=facts.id,
            email=email,
            role=role,
            invited_by=caller and caller.id,
            lifetime=constants.INVITATION_LIFETIME,
        )
        variables = {"organization": facts.name, "slug": facts.slug, "inviter": _inviter(asked, caller)}
        kind = "none" if quota.refused_by else "organization_invitation"
        outgoing.Message(asked, email, carries=[]).write(act, None, kind, **variables)
        record(act, "member_invited", facts, invited=email, invited_as=role)
    if access.is_operator(asked):
        # A member would learn of other organizations' invitations.
        outgoing.add_quota_headers(asked, quota)
    return invitation.invitation_object


def _take_quota(asked: Asked, email: str) -> outgoing.Counted:
    """Count an invitation, in a window that members do not share with operators.

    What it counts as refused is written without a mail. The address counts as new, because beyond a limit the
    answer would tell whether a user has proved it.
    """
    if access.is_operator(asked):
        windows = outgoing.windows_of_operators(asked, email)
        return outgoing.take_quota(asked, email, windows, is_new=True)
    windows = [outgoing.window("member_invite", asked.settings.rate_limit_invite_per_address, email)]
    return outgoing.admit(asked, email, windows)


def open_invitation(asked: Asked, id: str, invitation_id: str) -> "queries.SelectInvitation":
    """Return an open invitation of an organization."""
    row = queries.select_invitation(asked.db, id=invitation_id, user_id=None)
    is_open = row and row.organization_id == id and row.expires_at > row.now
    return found(row if is_open else None, "invitation_not_found")


def withdraw(asked: Asked, organization: VisibleOrganization, invitation_id: str) -> None:
    organization = access.admit(asked, organization, OWNER, ADMIN)
    with access.begin(asked) as act:
        facts, caller = access.lock(asked, act, organization)
        row = queries.withdraw_invitation(act, id=invitation_id, organization_id=facts.id)
        invitation = found(row, "invitation_not_found")
        if caller and not organizations.may_manage(facts.actor_role, invitation.role, None):
            raise ApiError("organization.insufficient_permissions")
        record(act, "invitation_withdrawn", facts, invited=invitation.email)


def accept(asked: Asked, invitation_id: str) -> JsonObject:
    """Join by an invitation for the caller's proved address. Return the membership."""
    with acts.on(asked.db, asked.caller.user_id) as act:
        person = admit_caller(asked, act)
        row = queries.select_invitation(act, id=invitation_id, user_id=person.id)
        number = queries.count_memberships(act, user_id=person.id).total
        refusal = organizations.refusal_of_acceptance(
            person, row, number, is_member=row is not None and row.membership is not None
        )
        if refusal or row is None:
            raise ApiError(refusal or "invitation_not_found")
        # An owner who invites the address again would leave a member with an open invitation.
        act.lock_organizations([row.organization_id])
        # Another request may have taken or withdrawn it first; sent again, it may have another role.
        invitation = found(queries.take_invitation(act, id=row.id), "invitation_not_found")
        joined = queries.join_organization(
            act, user_id=person.id, organization_id=row.organization_id, role=invitation.role
        )
        role = invitation.role if joined else row.membership
        if joined:
            organization = found(facts_of(act, row.organization_id), "organization_not_found")
            record_added(act, organization, person, invitation.role, "invitation")
            if invitation.role == OWNER:
                tell_owners(asked, act, organization, "organization_owner_added")
    return {"id": row.organization_id, "slug": row.slug, "name": row.name, "role": role}


def decline(asked: Asked, invitation_id: str) -> None:
    """Decline an invitation for the caller's proved address."""
    with acts.on(asked.db, asked.caller.user_id) as act:
        person = admit_caller(asked, act)
        row = queries.select_invitation(act, id=invitation_id, user_id=person.id)
        if row is None or not organizations.is_open_to(person, row):
            raise ApiError("invitation_not_found")
        found(queries.take_invitation(act, id=row.id), "invitation_not_found")
        organization = found(facts_of(act, row.organization_id), "organization_not_found")
        record(act, "invitation_declined", organization, Member(person.id, person.email, row.role))


def _inviter(asked: Asked, caller: "PersonFacts | None") -> str | None:
    if caller is None:
        administrator = asked.administrator
        return administrator and (names.person(administrator.name) or administrator.email)
    return names.person(names.of_user(caller.user_metadata)) or caller.email
