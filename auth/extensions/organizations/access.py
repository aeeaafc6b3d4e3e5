"""Access to organizations, for the API, pages, console and commands.

A member acts by the role (rule 48), the service role key and administrators of the service without one.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, replace
from typing import Any

from psycopg2.errors import UniqueViolation

from auth.core.json_bodies import JsonObject
from auth.flows.admin import targets
from auth.flows.facts import PersonFacts
from auth.flows.organizations import (
    OrganizationFacts,
    as_seen,
    facts_of,
    is_provider_off,
    listed,
    membership_of,
    named,
)
from auth.flows.sign_in import reauthentication
from auth.flows.sign_in.reauthentication import WantedChange, admit_caller
from auth.rules import organizations
from auth.rules.organizations import Role, Standing
from auth.rules.proofs import Proof
from auth.web.asked import Asked
from auth.web.callers import standing_of
from auth.web.errors import ApiError, found
from sql import Runner, acts, queries
from sql.acts import Act

CHANGE = WantedChange("change", "organization")
# The members of a requirement that the error of a refusal repeats.
_MEMBERS_OF_REFUSALS: Mapping[str, Sequence[str]] = {
    "organization_sign_in_needed": ("providers",),
    "reauthentication_needed": ("max_age", "providers"),
}


@dataclass(frozen=True)
class VisibleOrganization:
    """An organization that the caller may see. `role`, and `standing` of the session, are the caller's, None
    for an operator; an act demands one of `roles` again, if there are any.
    """

    id: str
    slug: str
    name: str
    role: Role
    requires: Mapping[str, Any]
    object: str
    standing: Standing | None = None
    roles: Sequence[str] = ()
    # The facts about the caller, from the same statement; None for an operator.
    caller: "queries.SelectMember | None" = None


def is_operator(asked: Asked) -> bool:
    """Whether a key of the service's operator, a command or an administrator in the console asks."""
    return asked.actor == "service_role" or asked.is_key or asked.administrator is not None


def find(asked: Asked, name: str) -> VisibleOrganization:
    """Find any organization for an operator, for a user one of their own, even if membership does not count.

    `name` is an id or a short name. The statement reads the caller, too, whose session must be good.
    """
    if is_operator(asked):
        row = found(queries.select_organization(asked.db, **named(name)), "organization_not_found")
        organization = VisibleOrganization(row.id, row.slug, row.name, None, {}, row.organization_object)
    else:
        member = asked.admit_reader(queries.select_member(asked.db, **asked.caller_ids, **named(name)))
        if member.id is None:
            raise ApiError("organization_not_found")
        organization = VisibleOrganization(
            member.id,
            member.slug or "",
            member.name or "",
            member.membership,
            member.requires,
            member.organization_object or "",
            standing_of(member, asked.caller),
            caller=member,
        )
    # Owners read a refusal in the log of their organization.
    asked.note_details(organization={"id": organization.id, "slug": organization.slug})
    return organization


def admit(asked: Asked, organization: VisibleOrganization, *roles: str) -> VisibleOrganization:
    """Return the organization for an act. Refuse a member whose membership does not count in the session, or
    who has none of the roles.
    """
    if is_operator(asked):
        return organization
    admit_session(organization.standing, organization, organization.role or "", organization.requires)
    if roles and organization.role not in roles:
        raise ApiError("organization.insufficient_permissions")
    return replace(organization, roles=roles)


def find_admitted(asked: Asked, name: str, *roles: str) -> VisibleOrganization:
    """Find an organization, and admit the caller."""
    return admit(asked, find(asked, name), *roles)


def find_row(asked: Asked, id: str) -> "queries.SelectOrganization":
    return found(queries.select_organization(asked.db, id=id, slug=None), "organization_not_found")


def memberships_and_invitations(asked: Asked) -> tuple[list[JsonObject], list[JsonObject]]:
    """Return the caller's memberships, as the session sees them, and the open invitations."""
    row = asked.admit_reader(queries.select_own_organizations(asked.db, **asked.caller_ids))
    standing = standing_of(row, asked.caller)
    memberships = [as_seen(each, standing) for each in listed(row.memberships)]
    return memberships, json.loads(row.invitations)


def give_proof(
    asked: Asked, organization: VisibleOrganization, body: JsonObject, *wanted: WantedChange
) -> Proof | None:
    """Check the proof in a body, and return its kind. None if no change is wanted, or an operator asks."""
    if not wanted or is_operator(asked):
        return None
    return reauthentication.give_proof(asked, body, *wanted, caller=organization.caller)


def require_proof(asked: Asked, organization: VisibleOrganization) -> None:
    """Refuse to show a page whose form the caller may not send without a proof."""
    reauthentication.require(asked, CHANGE, caller=organization.caller)


def begin(asked: Asked) -> AbstractContextManager[Act]:
    """Run an act of an operator, whose rights are checked last, or of a user."""
    return targets.begin(asked) if is_operator(asked) else acts.begin(asked.db)


def lock_caller(
    asked: Asked, act: Act, user_id: str | None, *wanted: WantedChange, proof: Proof | None = None
) -> "PersonFacts | None":
    """Lock the caller and a user, and return the facts about the caller, None for an operator."""
    if is_operator(asked):
        act.lock_users([user_id])
        return None
    act.lock_users([asked.caller.user_id, user_id])
    return admit_caller(asked, act, *wanted, proof=proof)


def lock(
    asked: Asked,
    act: Act,
    organization: VisibleOrganization,
    *wanted: WantedChange,
    user_id: str | None = None,
    proof: Proof | None = None,
    is_leaving: bool = False,
) -> "tuple[OrganizationFacts, PersonFacts | None]":
    """Lock the caller, a user and an organization, and return the facts about the organization and about the
    caller, None for an operator. Refuse as `admit` does, and a caller without a proof for a wanted change.
    """
    caller = lock_caller(asked, act, user_id, *wanted, proof=proof)
    act.lock_organizations([organization.id])
    row = facts_of(act, organization.id, user_id, caller and caller.id)
    facts = found(row, "organization_not_found")
    if caller:
        role = found(facts.actor_role, "organization_not_found")
        if not is_leaving:
            admit_session(standing_of(caller, asked.caller), facts, role, facts.requires)
        if organization.roles and role not in organization.roles:
            raise ApiError("organization.insufficient_permissions")
    return facts, caller


def admit_session(
    standing: Standing | None,
    organization: "VisibleOrganization | OrganizationFacts",
    role: str,
    requires: Mapping[str, Any],
) -> None:
    """Refuse a session in which a membership does not count. Its page leads to what is needed."""
    membership = membership_of({"id": organization.id, "role": role, "requires": requires})
    refusal = organizations.refusal_of_session(membership, standing or organizations.NO_STANDING)
    if refusal is None:
        return
    names = _MEMBERS_OF_REFUSALS.get(refusal, ())
    members = {name: requires[name] for name in names if requires.get(name) is not None}
    if refusal == "reauthentication_needed":
        again = "with one of `providers`" if "providers" in members else "or use POST /reauthenticate"
        details = f"sign in again, {again}: the last sign-in is older than `max_age`"
        raise ApiError(f"organization.{refusal}", details, members=members, organization=organization.name)
    raise ApiError(refusal, members=members, organization=organization.name)


def demand_operator(asked: Asked, body: JsonObject, *names: str) -> None:
    """Refuse a body with one of these members, unless an operator sends it."""
    refused = next((name for name in names if name in body), None)
    if refused and not is_operator(asked):
        raise ApiError(
            "organization.insufficient_permissions", f"{refused}: only the service role key sets it"
        )


@contextmanager
def refusing_taken(error: ApiError) -> Iterator[None]:
    """Refuse what another organization has already."""
    try:
        yield
    except UniqueViolation:
        raise error from None


def proved_domains(asked: Asked, on: Runner, organization_id: str) -> Sequence[str]:
    """Return the domains that an organization has proved, on this machine also those that a command has."""
    by_command = asked.settings.serves_this_machine
    return queries.list_proved_domains(on, organization_id=organization_id, by_command=by_command).domains


def has_way_in(asked: Asked, act: Act, organization_id: str) -> bool:
    """Whether a provider of an organization signs users in: it is on, and has a domain."""
    ways = queries.list_ways_in(act, organization_id=organization_id)
    return not all(is_provider_off(asked.settings, way) for way in ways)


@contextmanager
def keeping_a_way_in(asked: Asked, act: Act, organization: OrganizationFacts) -> Iterator[None]:
    """Refuse an owner's change that leaves no provider to sign in with, while members have to use one."""

    if is_operator(asked) or not organization.needs_own_provider:
        yield
        return
    before = has_way_in(asked, act, organization.id)
    yield
    after = has_way_in(asked, act, organization.id)
    if refusal := organizations.refusal_of_loss(before=before, after=after):
        raise ApiError(refusal)
