"""Organizations elsewhere: the user object of a session, its claim, notices to owners, and the audit log.

Memberships are in memberships.py, everything else about organizations in auth/extensions/organizations.
"""

import json
from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Any, NamedTuple, Protocol, TypeAlias

from auth.core.json_bodies import JsonObject
from auth.core.providers.places import PlacedProvider, is_out_of_place
from auth.core.settings import Settings
from auth.core.tokens.access_tokens import providers_in
from auth.delivery import notices
from auth.flows.messages import outgoing
from auth.rules import organizations
from auth.rules.organizations import OWNER, Membership, Standing
from auth.rules.refusals import Refusal
from auth.rules.sessions import EPOCH
from auth.rules.users import Person
from auth.web.asked import Asked
from auth.web.errors import ApiError
from auth.web.fields import is_uuid
from sql import queries
from sql.acts import Act

OrganizationFacts: TypeAlias = "queries.SelectOrganizationFacts"

CLAIM = "organizations"


class Member(NamedTuple):
    """A user whom an entry of the audit log is about."""

    id: str
    email: str | None
    role: str | None


class ProviderColumns(PlacedProvider, Protocol):
    """A row with a customer's provider, which may be an organization's."""

    @property
    def organization_id(self) -> str | None: ...


class UserColumns(Protocol):
    """A row with a user object, and its memberships: a column of `memberships_of`, which the object lacks."""

    @property
    def user_object(self) -> str: ...
    @property
    def memberships(self) -> str: ...


def is_on(settings: Settings) -> bool:
    return settings.organizations != "off"


def may_found(settings: Settings, person: Person) -> bool:
    """Whether pages offer a user to found an organization. The act counts those that the user has founded."""
    return settings.organizations == "users" and person.email_proved


def is_provider_off(settings: Settings, provider: ProviderColumns) -> bool:
    """Whether a provider signs in nobody with these settings."""
    return is_off_with_organizations(settings, provider) or is_out_of_place(settings, provider)


def is_off_with_organizations(settings: Settings, provider: ProviderColumns) -> bool:
    return provider.organization_id is not None and not is_on(settings)


def named(name: str) -> dict[str, str | None]:
    """Return the parameters of an organization's id or short name."""
    if is_uuid(name):
        return {"id": name, "slug": None}
    # Postgres refuses a NUL, which a path may have.
    return {"id": None, "slug": None if "\0" in name else name}


def user_object_for(row: UserColumns, standing: Standing) -> str:
    """Return the user object as a session sees it.

    A membership that does not count in it has no role, but says what it requires (rule 47).
    """
    if not row.memberships:
        return row.user_object
    memberships = [as_seen(each, standing) for each in listed(row.memberships)]
    # The rest stays as Postgres has written it: parsed, numbers of metadata would lose digits.
    return f'{{"{CLAIM}": {json.dumps(memberships, ensure_ascii=False)}, {row.user_object[1:]}'


def as_seen(membership: JsonObject, standing: Standing) -> JsonObject:
    """Return a membership of a user object as a session sees it."""
    hidden = "requires" if organizations.counts(membership_of(membership), standing) else "role"
    return {name: value for name, value in membership.items() if name != hidden}


def missing_step(seen: Mapping[str, Any], standing: Standing) -> Refusal | None:
    """Return what a membership, as a session sees it, lacks there; None if it counts."""
    if "requires" not in seen:
        return None
    return organizations.refusal_of_session(membership_of({"id": "", "role": "", **seen}), standing)


def listed(column: str) -> list[JsonObject]:
    """Return the memberships in a column of `memberships_of`."""
    memberships: list[JsonObject] = json.loads("{" + column.removesuffix(", ") + "}")[CLAIM] if column else []
    return memberships


def standing_of(person: "queries.SelectPerson | None") -> Standing:
    """Return the standing of the session that a person was read with. Without one, nothing counts."""
    if person is None or person.aal is None:
        return organizations.NO_STANDING
    return Standing(person.aal, providers_in(person.amr), person.authenticated_at or EPOCH, person.now)


def standing_of_key(aal: str | None, now: datetime) -> Standing:
    """Return the standing of an API key: nobody signed in with it."""
    return Standing(aal or "aal1", {}, EPOCH, now)


def counting(column: str, standing: Standing) -> dict[str, str]:
    """Return the roles in a column of `memberships_of` that count in a session, by organization."""
    return organizations.roles_in_token(map(membership_of, listed(column)), standing)


def claim(column: str, standing: Standing) -> JsonObject:
    """Return the claim of a session's token, from a column of `memberships_of`; none without a role."""
    roles = counting(column, standing)
    return {CLAIM: roles} if roles else {}


def present_claims(claims: JsonObject, column: str, standing: Standing) -> JsonObject:
    """Return the claims of an introspection with the memberships that still count, and present roles."""
    memberships = claims.get(CLAIM)
    if not isinstance(memberships, dict):
        return claims
    roles = counting(column, standing)
    return claims | {CLAIM: {id: roles[id] for id in memberships if id in roles}}


def membership_of(membership: Mapping[str, Any]) -> Membership:
    """Return a membership of a user object as the rules take it."""
    required = membership.get("requires", {})
    seconds = required.get("max_age")
    return Membership(
        id=membership["id"],
        role=membership["role"],
        level=required.get("aal", "aal1"),
        providers=required.get("providers"),
        max_age=None if seconds is None else timedelta(seconds=seconds),
    )


def facts_of(
    act: Act, id: str, user_id: str | None = None, actor_id: str | None = None
) -> "OrganizationFacts | None":
    """Return what decides about an organization that has not ended, and about a user's membership there."""
    return act.read(queries.select_organization_facts, id=id, user_id=user_id, actor_id=actor_id)


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
    domains = queries.list_proved_domains(act, organization_id=id, by_command=True).domains
    if domains or queries.list_providers_of_organization(act, organization_id=id):
        raise ApiError(
            "insufficient_permissions",
            "role: must not be owner where a domain is proved or a provider is connected",
        )


def record(
    act: Act,
    entry: str,
    organization: "OrganizationFacts | queries.SelectOrganization",
    member: Member | None = None,
    *,
    event: str | None = None,
    **details: object,
) -> None:
    """Write an entry of the audit log about an organization, and an event.

    The entry keeps the member's address: owners read it once the member has left.
    """
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
        details=json.dumps({"organization": names, "role": role, "email": email} | details),
    )
