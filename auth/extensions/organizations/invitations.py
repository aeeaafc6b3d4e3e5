"""Acts on invitations: of those who invite, and of those who are invited."""

import uuid

from auth.core import constants
from auth.core.json_bodies import JsonObject
from auth.core.text import names
from auth.extensions.organizations import access
from auth.flows.facts import PersonFacts
from auth.flows.messages import outgoing
from auth.flows.organizations import Member, facts_of, record, record_added, refuse_owner_by_key, tell_owners
from auth.flows.sign_in.reauthentication import admit_caller
from auth.rules import organizations
from auth.rules.organizations import ADMIN, OWNER
from auth.web.asked import Asked
from auth.web.errors import ApiError, found
from sql import acts, queries


def invite(asked: Asked, name: str, email: str, role: str, body: JsonObject) -> str:
    """Invite an address, whether or not a user has it. Return the invitation's object.

    The same address again gets the new role, and another seven days.
    """
    seen, settings = access.see(asked, name, OWNER, ADMIN), asked.settings
    if seen.role and not organizations.may_manage(seen.role, None, role):
        raise ApiError("organization.insufficient_permissions")
    sent = body if organizations.manages(role) else None
    given = access.give_proof(asked, sent)
    windows = [outgoing.window("invite", settings.rate_limit_invite_per_address, email)]
    if access.is_operator(asked):
        windows.append(outgoing.window("invite", settings.rate_limit_invite))
    # As new: beyond a limit, the answer would tell whether a user has proved the address.
    quota = outgoing.take_quota(asked, email, windows, is_new=True)
    with access.locked(asked, seen, body=sent, given=given) as (act, known, caller):
        again = queries.select_invitation_of_address(act, organization_id=known.id, email=email)
        open_role = again.role if again and again.expires_at > known.now else None
        refusal = organizations.refusal_of_invitation(known.actor_role, open_role, role, known.invitations)
        if refusal:
            raise ApiError(refusal)
        refuse_owner_by_key(asked, act, known.id, role)
        written = queries.write_invitation(
            act,
            id=str(uuid.uuid4()),
            organization_id=known.id,
            email=email,
            role=role,
            invited_by=caller and caller.id,
            lifetime=constants.INVITATION_LIFETIME,
        )
        said = {"organization": known.name, "slug": known.slug, "inviter": _inviter(asked, caller)}
        outgoing.Message(asked, email, carries=[]).write(act, None, "organization_invitation", **said)
        record(act, "member_invited", known, invited=email, invited_as=role)
    outgoing.add_quota_headers(asked, quota)
    return written.invitation_object


def open_invitation(asked: Asked, id: str, invitation_id: str) -> "queries.SelectInvitation | None":
    """Return an open invitation of an organization."""
    row = queries.select_invitation(asked.db, id=invitation_id, user_id=None)
    return row if row and row.organization_id == id and row.expires_at > row.now else None


def withdraw(asked: Asked, name: str, invitation_id: str) -> None:
    """Withdraw an invitation."""
    seen = access.see(asked, name, OWNER, ADMIN)
    with access.locked(asked, seen) as (act, known, _):
        row = queries.withdraw_invitation(act, id=invitation_id, organization_id=known.id)
        gone = found(row, "invitation_not_found")
        if not access.is_operator(asked) and not organizations.may_manage(known.actor_role, gone.role, None):
            raise ApiError("organization.insufficient_permissions")
        record(act, "invitation_withdrawn", known, invited=gone.email)


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
        # Another request, or who withdrew it, may have been first; sent again, it has another role.
        taken = found(queries.take_invitation(act, id=row.id), "invitation_not_found")
        joined = queries.join_organization(
            act, user_id=person.id, organization_id=row.organization_id, role=taken.role
        )
        role = taken.role if joined else row.membership
        if joined:
            known = found(facts_of(act, row.organization_id), "organization_not_found")
            record_added(act, known, person, taken.role, "invitation")
            if taken.role == OWNER:
                tell_owners(asked, act, known, "organization_owner_added")
    return {"id": row.organization_id, "slug": row.slug, "name": row.name, "role": role}


def decline(asked: Asked, invitation_id: str) -> None:
    """Decline an invitation for the caller's proved address."""
    with acts.on(asked.db, asked.caller.user_id) as act:
        person = admit_caller(asked, act)
        row = queries.select_invitation(act, id=invitation_id, user_id=person.id)
        if row is None or not organizations.is_open_to(person, row):
            raise ApiError("invitation_not_found")
        found(queries.take_invitation(act, id=row.id), "invitation_not_found")
        known = found(facts_of(act, row.organization_id), "organization_not_found")
        record(act, "invitation_declined", known, Member(person.id, person.email, row.role))


def _inviter(asked: Asked, caller: "PersonFacts | None") -> str | None:
    if caller is None:
        administrator = asked.administrator
        return administrator and (names.person(administrator.name) or administrator.email)
    return names.person(names.of_user(caller.user_metadata)) or caller.email
