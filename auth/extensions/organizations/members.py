"""Acts on the members of an organization."""

from auth.core.json_bodies import JsonObject
from auth.extensions.organizations import access
from auth.flows.admin import targets
from auth.flows.facts import PersonFacts
from auth.flows.links.proving import person_of
from auth.flows.messages import outgoing
from auth.flows.organizations import (
    Member,
    OrganizationFacts,
    record,
    record_added,
    refuse_owner_by_key,
    remove_member,
    tell_owners,
)
from auth.rules import organizations
from auth.rules.organizations import OWNER, Role
from auth.web.asked import Asked
from auth.web.errors import ApiError
from sql import queries
from sql.acts import Act


def set_role(
    asked: Asked, name: str, user_id: str, role: str, body: JsonObject, *, tells: bool = True
) -> JsonObject:
    """Change the role of a member; an operator also adds one. Return the member.

    `tells` the other owners of a new one.
    """
    seen = access.see(asked, name)
    sent = body if organizations.manages(role) else None
    with access.locked(asked, seen, user_id, body=sent) as (act, known, caller):
        if known.role is None and not access.is_operator(asked):
            # Also without such a user.
            raise ApiError("member.user_not_found")
        member = target(asked, act, user_id)
        _refuse(asked, known, caller, user_id, role)
        refuse_owner_by_key(asked, act, known.id, role)
        if known.role is None:
            write_membership(act, known, addable(member), role, "administrator")
        elif known.role != role:
            queries.write_membership(
                act, user_id=user_id, organization_id=known.id, role=role, added_by="administrator"
            )
            if organizations.loses_invitations(known.role, role):
                queries.withdraw_invitations_by(act, user_id=user_id, organization_id=known.id)
            changed = Member(user_id, member.email, role)
            record(act, "membership_changed", known, changed, event="membership.updated", before=known.role)
        if tells and role == OWNER and known.role != OWNER:
            tell_owners(asked, act, known, "organization_owner_added", but=user_id)
    return {"user_id": user_id, "role": role}


def remove(asked: Asked, name: str, user_id: str) -> None:
    """Remove a member. Members may leave, also while the membership does not count."""
    is_leaving = not access.is_operator(asked) and user_id == asked.caller.user_id
    seen = access.see_own(asked, name) if is_leaving else access.see(asked, name)
    with access.locked(asked, seen, user_id, is_leaving=is_leaving) as (act, known, caller):
        if known.role is None:
            raise ApiError("member.user_not_found")
        member = target(asked, act, user_id)
        _refuse(asked, known, caller, user_id, None)
        remove_member(act, known, user_id)
        if not is_leaving:
            outgoing.notify_without_link(asked, act, member, "membership_removed", organization=known.name)


def _refuse(
    asked: Asked, known: OrganizationFacts, caller: "PersonFacts | None", user_id: str, role: Role
) -> None:
    """Refuse to give a member this role. Only the service role key may take the last owner (rule 48)."""
    if asked.actor == "service_role":
        return
    refusal = organizations.refusal_of_change(
        known.actor_role if caller else OWNER,
        known.role,
        role,
        known.other_owners,
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
    """Return a user whom an operator may add: not one whom a stranger may have made."""
    if not organizations.may_be_added(person):
        raise ApiError("email_not_confirmed")
    return person


def write_membership(act: Act, known: OrganizationFacts, user: PersonFacts, role: str, added_by: str) -> None:
    """Add a locked user, unless the user is in too many organizations."""
    if organizations.is_in_fifty(queries.count_memberships(act, user_id=user.id).total):
        raise ApiError("too_many_memberships")
    queries.write_membership(act, user_id=user.id, organization_id=known.id, role=role, added_by=added_by)
    record_added(act, known, user, role, added_by)
