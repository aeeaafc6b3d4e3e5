"""Acts on the members of an organization."""

from auth.core.json_bodies import JsonObject
from auth.extensions.organizations import access
from auth.extensions.organizations.access import VisibleOrganization
from auth.flows.admin import targets
from auth.flows.facts import PersonFacts
from auth.flows.links.proving import person_of
from auth.flows.memberships import record_added, remove_member
from auth.flows.messages import outgoing
from auth.flows.organizations import (
    Member,
    OrganizationFacts,
    record,
    refuse_owner_by_key,
    tell_owners,
)
from auth.rules import organizations
from auth.rules.organizations import OWNER, Role
from auth.web.asked import Asked
from auth.web.errors import ApiError
from sql import queries
from sql.acts import Act


def set_role(
    asked: Asked,
    organization: VisibleOrganization,
    user_id: str,
    role: str,
    body: JsonObject,
    *,
    tells: bool = True,
) -> JsonObject:
    """Change the role of a member, or add one for an operator. `tells` the other owners of a new owner."""
    organization = access.admit(asked, organization)
    wanted = [access.CHANGE] if organizations.manages(role) else []
    proof = access.give_proof(asked, organization, body, *wanted)
    with access.begin(asked) as act:
        facts, caller = access.lock(asked, act, organization, *wanted, user_id=user_id, proof=proof)
        if facts.role is None and not access.is_operator(asked):
            # The same for an id that no user has.
            raise ApiError("member.user_not_found")
        member = target(asked, act, user_id)
        _refuse(asked, facts, caller, user_id, role)
        refuse_owner_by_key(asked, act, facts.id, role)
        if facts.role is None:
            write_membership(act, facts, addable(member), role, "administrator")
        elif facts.role != role:
            queries.write_membership(
                act, user_id=user_id, organization_id=facts.id, role=role, added_by="administrator"
            )
            if organizations.loses_invitations(facts.role, role):
                queries.withdraw_invitations_by(act, user_id=user_id, organization_id=facts.id)
            after = Member(user_id, member.email, role)
            record(act, "membership_changed", facts, after, event="membership.updated", before=facts.role)
        if tells and role == OWNER and facts.role != OWNER:
            tell_owners(asked, act, facts, "organization_owner_added", but=user_id)
    return {"user_id": user_id, "role": role}


def remove(asked: Asked, organization: VisibleOrganization, user_id: str) -> None:
    """Remove a member. Members may leave even while the membership does not count."""
    is_leaving = not access.is_operator(asked) and user_id == asked.caller.user_id
    if not is_leaving:
        organization = access.admit(asked, organization)
    with access.begin(asked) as act:
        facts, caller = access.lock(asked, act, organization, user_id=user_id, is_leaving=is_leaving)
        if facts.role is None:
            raise ApiError("member.user_not_found")
        member = target(asked, act, user_id)
        _refuse(asked, facts, caller, user_id, None)
        departure = remove_member(asked, act, facts, user_id)
        if not (is_leaving or departure.lost):
            details = {
                "sign_in": departure.sign_in,
                "by_mailbox_alone": departure.by_mailbox_alone,
                "may_disconnect": departure.may_disconnect,
                "may_rejoin": departure.may_rejoin,
            }
            outgoing.notify_without_link(
                asked, act, member, "membership_removed", organization=facts.name, **details
            )


def _refuse(
    asked: Asked, organization: OrganizationFacts, caller: "PersonFacts | None", user_id: str, role: Role
) -> None:
    """Refuse to give a member this role. Only the service role key may take the last owner (rule 48)."""
    if asked.actor == "service_role":
        return
    refusal = organizations.refusal_of_change(
        organization.actor_role if caller else OWNER,
        organization.role,
        role,
        organization.other_owners,
        is_self=caller is not None and user_id == caller.id,
    )
    if refusal:
        raise ApiError(refusal)


def target(asked: Asked, act: Act, user_id: str) -> PersonFacts:
    """Return a user whose membership an act changes. Refuse an operator who may not change the user."""
    person = person_of(act, user_id)
    if access.is_operator(asked):
        targets.admit(asked, person)
    return person


def addable(person: PersonFacts) -> PersonFacts:
    """Return a user whom an operator adds. Refuse one whom a stranger may have made."""
    if not organizations.may_be_added(person):
        raise ApiError("email_not_confirmed")
    return person


def write_membership(
    act: Act, organization: OrganizationFacts, user: PersonFacts, role: str, added_by: str
) -> None:
    """Add a locked user, unless the user is in too many organizations."""
    if organizations.is_in_fifty(queries.count_memberships(act, user_id=user.id).total):
        raise ApiError("too_many_memberships")
    queries.write_membership(
        act, user_id=user.id, organization_id=organization.id, role=role, added_by=added_by
    )
    record_added(act, organization, user, role, added_by)
