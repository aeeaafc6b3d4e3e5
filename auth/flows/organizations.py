"""Effects of organizations elsewhere: the user object of a session, its claim, and the deletion of a user.

Everything else about organizations is in auth/extensions/organizations.
"""

import json
from collections.abc import Collection, Mapping
from typing import Any, NamedTuple, Protocol, TypeAlias

from auth.core.json_bodies import JsonObject
from auth.core.settings import Settings
from auth.core.tokens.access_tokens import providers_in
from auth.delivery import notices
from auth.flows import ends
from auth.flows.facts import PersonFacts
from auth.flows.messages import outgoing
from auth.rules import organizations
from auth.rules.levels import Aal
from auth.rules.organizations import OWNER, Membership
from auth.web.asked import Asked
from auth.web.errors import ApiError
from auth.web.fields import is_uuid
from sql import acts, queries
from sql.acts import Act

OrganizationFacts: TypeAlias = "queries.SelectOrganizationFacts"

CLAIM = "organizations"
_BATCH = 100


class Member(NamedTuple):
    """A user whom an entry of the audit log is about."""

    id: str
    email: str | None
    role: str | None


class SessionFacts(Protocol):
    """A row of a session: its level, None without one, and the methods that opened it."""

    @property
    def aal(self) -> str | None: ...
    @property
    def amr(self) -> object: ...


class UserColumns(Protocol):
    """A row with a user object, and its memberships: a column of `memberships_of`, which the object lacks."""

    @property
    def user_object(self) -> str: ...
    @property
    def memberships(self) -> str: ...


def is_on(settings: Settings) -> bool:
    return settings.organizations != "off"


def is_provider_off(settings: Settings, organization_id: str | None) -> bool:
    """Whether a provider signs in nobody because it is an organization's, and organizations are off."""
    return organization_id is not None and not is_on(settings)


def named(name: str) -> dict[str, str | None]:
    """Return the parameters of an organization's id or short name."""
    if is_uuid(name):
        return {"id": name, "slug": None}
    # Postgres refuses a NUL, which a path may have.
    return {"id": None, "slug": None if "\0" in name else name}


def user_object_for(row: UserColumns, aal: Aal, providers: Collection[str] = ()) -> str:
    """Return the user object as a session of this level, which providers may have opened, sees it.

    A membership that does not count in it has no role, but says what it requires (rule 47).
    """
    if not row.memberships:
        return row.user_object
    memberships = [as_seen(each, aal, providers) for each in listed(row.memberships)]
    # The rest stays as Postgres has written it: parsed, numbers of metadata would lose digits.
    return f'{{"{CLAIM}": {json.dumps(memberships, ensure_ascii=False)}, {row.user_object[1:]}'


def as_seen(listed: JsonObject, aal: Aal, providers: Collection[str]) -> JsonObject:
    """Return a membership of a user object as a session sees it."""
    hidden = "requires" if organizations.counts(membership_of(listed), aal, providers) else "role"
    return {name: value for name, value in listed.items() if name != hidden}


def listed(column: str) -> list[JsonObject]:
    """Return the memberships in a column of `memberships_of`."""
    memberships: list[JsonObject] = json.loads("{" + column.removesuffix(", ") + "}")[CLAIM] if column else []
    return memberships


def level_and_providers(session: SessionFacts | None) -> tuple[Aal, Collection[str]]:
    """Return the level of a session, and the providers that opened it. Without a session, nothing counts."""
    return (session.aal or "", providers_in(session.amr)) if session else ("", ())


def counting(column: str, session: SessionFacts | None) -> dict[str, str]:
    """Return the roles in a column of `memberships_of` that count in a session, by organization."""
    return organizations.roles_in_token(map(membership_of, listed(column)), *level_and_providers(session))


def claim(column: str, aal: Aal, providers: Collection[str] = ()) -> JsonObject:
    """Return the claim of a session's token, from a column of `memberships_of`; none without a role."""
    if not column:
        return {}
    roles = organizations.roles_in_token(map(membership_of, listed(column)), aal, providers)
    return {CLAIM: roles} if roles else {}


def present_claims(claims: JsonObject, column: str, aal: Aal, providers: Collection[str] = ()) -> JsonObject:
    """Return the claims of an introspection with the memberships that still count, and present roles."""
    memberships = claims.get(CLAIM)
    if not isinstance(memberships, dict):
        return claims
    roles = claim(column, aal, providers).get(CLAIM, {})
    return claims | {CLAIM: {id: roles[id] for id in memberships if id in roles}}


def membership_of(listed: Mapping[str, Any]) -> Membership:
    """Return a membership of a user object as the rules take it."""
    required = listed.get("requires", {})
    level, providers = required.get("aal", "aal1"), required.get("providers")
    return Membership(id=listed["id"], role=listed["role"], level=level, providers=providers)


def facts_of(
    act: Act, id: str, user_id: str | None = None, actor_id: str | None = None
) -> "OrganizationFacts | None":
    """Return what decides about an organization that has not ended, and about a user's membership there."""
    return act.read(queries.select_organization_facts, id=id, user_id=user_id, actor_id=actor_id)


def remove_member(act: Act, organization: OrganizationFacts, user_id: str) -> None:
    """Remove a locked user, whom the facts are about, from a locked organization, with what ends then."""
    if _end_membership(act, user_id, organization.id):
        _record_removed(act, organization, user_id)


def _end_membership(act: Act, user_id: str, organization_id: str, provider_id: str | None = None) -> bool:
    """End a membership, the invitations that the user sent there, and the sessions of applications that need
    it (rule 49). With a provider, end only a membership that it added. Return whether there was one.
    """
    ids = {"user_id": user_id, "organization_id": organization_id}
    if queries.remove_membership(act, **ids, provider_id=provider_id) is None:
        return False
    queries.withdraw_invitations_by(act, **ids)
    ends.end_refused_sessions(act, user_id)
    return True


def end_memberships_of_provider(asked: Asked, provider_id: str) -> bool:
    """End some memberships that a provider added, and return whether there are more.

    The last owner's stays, as one that no provider added.
    """
    members = queries.list_members_of_provider(asked.db, provider_id=provider_id, most=_BATCH)
    for member in members:
        user_id, id = member.user_id, member.organization_id
        with acts.on(asked.db, user_id) as act:
            act.lock_organizations([id])
            organization = facts_of(act, id, user_id)
            if organization and organizations.is_last_owner(organization.role, organization.other_owners):
                queries.keep_membership(act, user_id=user_id, organization_id=id, provider_id=provider_id)
            elif _end_membership(act, user_id, id, provider_id) and organization:
                _record_removed(act, organization, user_id)
    return len(members) == _BATCH


def join_by_provider(act: Act, user: PersonFacts, organization_id: str, provider_id: str, role: str) -> None:
    """Add a locked user to the organization whose provider signs the user in (rule 46).

    A member keeps the role, and a user in fifty stays out.
    """
    organization = facts_of(act, organization_id, user.id)
    number = queries.count_memberships(act, user_id=user.id).total
    if organization is None or organization.role or organizations.is_in_fifty(number):
        return
    ids = {"user_id": user.id, "organization_id": organization_id, "provider_id": provider_id}
    queries.add_by_provider(act, **ids, role=role)
    record_added(act, organization, user, role, "provider")


def leave_all(asked: Asked, act: Act, user_id: str) -> None:
    """Take a locked user out of all organizations, before the user is deleted.

    Refuse for the last owner of an organization with other members (rule 48); one without others ends.
    """
    if not is_on(asked.settings):
        return
    ids = [row.id for row in queries.list_memberships(act, user_id=user_id)]
    if not ids:
        return
    act.lock_organizations(ids)
    for id in sorted(ids):
        organization = facts_of(act, id, user_id)
        if organization is None:
            continue
        effect = organizations.what_deletion_does(
            organization.role, organization.members, organization.other_owners
        )
        if effect == "refuse" and asked.actor != "service_role":
            raise ApiError("last_owner")
        if effect == "end":
            refuse_key(asked, act, id)
            queries.end_organization(act, id=id)
            record(act, "organization_ended", organization, event="organization.deleted")
        else:
            _record_removed(act, organization, user_id)


def tell_owners(
    asked: Asked,
    act: Act,
    organization: "OrganizationFacts | queries.SelectOrganization",
    kind: str,
    *,
    but: str | None = None,
    **variables: object,
) -> None:
    """Write a notice to the owners of an organization, except the caller and `but`."""
    variables = notices.variables_of(organization, **variables)
    caller_id = asked.user.user_id if asked.user else None
    for owner in notices.owners_of(act, organization.id, excluded=(but, caller_id)):
        outgoing.notify_without_link(asked, act, owner, kind, **variables)


def refuse_key(asked: Asked, act: Act, id: str) -> None:
    """Refuse an administrative key that ends an organization whose provider would be deleted (rule 6)."""
    if asked.is_key and queries.list_providers_of_organization(act, organization_id=id):
        raise ApiError("insufficient_permissions", "providers: must be deleted first")


def refuse_owner_by_key(asked: Asked, act: Act, id: str, role: str) -> None:
    """Refuse an administrative key that gives a locked organization an owner, who could connect or change the
    provider of its proved domain (rule 6).
    """
    if role != OWNER or not asked.is_key:
        return
    domains = queries.list_proved_domains(act, organization_id=id).domains
    if domains or queries.list_providers_of_organization(act, organization_id=id):
        raise ApiError(
            "insufficient_permissions",
            "role: must not be owner where a domain is proved or a provider is connected",
        )


def take_back(asked: Asked, act: Act, user_id: str) -> list[str]:
    """Take a locked user out of the organizations that a thief may have joined by invitation in the last
    seven days. Return the short names.

    The last owner stays (rule 48). Roles that the user gave stay, too.
    """
    if not is_on(asked.settings):
        return []
    memberships = queries.list_memberships(act, user_id=user_id)
    recent = [each.id for each in memberships if organizations.is_taken_back(each)]
    if recent:
        act.lock_organizations(recent)
    slugs = []
    for id in recent:
        organization = facts_of(act, id, user_id)
        if organization and not organizations.is_last_owner(organization.role, organization.other_owners):
            remove_member(act, organization, user_id)
            slugs.append(organization.slug)
    return sorted(slugs)


def record_added(
    act: Act, organization: OrganizationFacts, user: PersonFacts, role: str, added_by: str
) -> None:
    member = Member(user.id, user.email, role)
    record(act, "membership_added", organization, member, event="membership.created", added_by=added_by)


def _record_removed(act: Act, organization: OrganizationFacts, user_id: str) -> None:
    member = Member(user_id, organization.email, organization.role)
    record(act, "membership_removed", organization, member, event="membership.deleted")


def record(
    act: Act,
    entry: str,
    organization: "OrganizationFacts | queries.SelectOrganization",
    member: Member | None = None,
    *,
    event: str | None = None,
    **details: object,
) -> None:
    """Write an entry of the audit log about an organization, and an event."""
    names = {"id": organization.id, "slug": organization.slug}
    user_id, email, role = member or (None, None, None)
    act.later(
        queries.record_organization_act,
        user_id=user_id,
        email=email,
        entry=entry,
        event=event,
        organization=json.dumps(names),
        role=role,
        details=json.dumps({"organization": names, "role": role} | details),
    )
