"""The sign-in of an organization: the providers that its owners set up, test and turn on."""

from collections.abc import Collection
from typing import Any

from auth.core.json_bodies import JsonObject
from auth.core.providers.customers import redirect_uri
from auth.core.text.names import PREFIX
from auth.extensions.organizations import access
from auth.extensions.organizations.access import VisibleOrganization
from auth.flows.admin import providers
from auth.flows.admin.provider_settings import WantedProvider
from auth.flows.admin.providers import Draft, PlannedChange
from auth.flows.organizations import OrganizationFacts
from auth.flows.sign_in.oauth import NewFlow, write_flow_of_caller
from auth.flows.sign_in.reauthentication import admit_caller
from auth.rules import identities, organizations
from auth.rules.organizations import OWNER
from auth.rules.proofs import Proof
from auth.web.asked import Asked
from auth.web.errors import ApiError, found
from sql import acts, queries
from sql.acts import Act


def listed(asked: Asked, organization: VisibleOrganization) -> list[dict[str, Any]]:
    rows = queries.list_providers_of_organization(asked.db, organization_id=organization.id)
    return [providers.described(asked, row) for row in rows]


def shown(asked: Asked, organization: VisibleOrganization, provider: str) -> dict[str, Any]:
    return providers.described(asked, providers.found_provider(asked, provider, organization.id))


def next_redirect_uri(asked: Asked, organization: VisibleOrganization) -> str:
    """Return the redirect URI of the provider that owners connect next, the same until they have done so."""
    return redirect_uri(asked.settings.base_url, _next_id(asked, organization))


def connect(asked: Asked, organization: VisibleOrganization, body: JsonObject) -> dict[str, Any]:
    """Connect a provider, which is off until an owner has tested it. Return its object.

    Refuse a `redirect_uri` other than the next one: another provider may have taken it since it was shown.
    """
    organization = access.admit(asked, organization, OWNER)
    proof = access.give_proof(asked, organization, body, access.CHANGE)
    id = _next_id(asked, organization)
    if body.get("redirect_uri") not in (None, redirect_uri(asked.settings.base_url, id)):
        raise ApiError("redirect_uri.validation_failed")
    draft = providers.drafted(asked, {**body, "enabled": False}, organization.id, id=id)
    _connect(asked, organization, draft, proof)
    return providers.described(asked, providers.found_provider(asked, draft.id))


def restore(asked: Asked, organization: VisibleOrganization, id: str, body: JsonObject) -> None:
    """Connect an imported provider by its id, which its redirect URI has. Sends no notice."""
    organization = access.admit(asked, organization, OWNER)
    draft = providers.drafted(asked, {**body, "enabled": False}, organization.id, id=id)
    _connect(asked, organization, draft._replace(is_blocked=body["is_blocked"], is_imported=True))


def _next_id(asked: Asked, organization: VisibleOrganization) -> str:
    row = queries.select_next_provider(asked.db, organization_id=organization.id)
    return found(row, "organization_not_found").id


def _connect(
    asked: Asked, organization: VisibleOrganization, draft: Draft, proof: Proof | None = None
) -> None:
    # Before it is fetched: any user can found an organization, and would choose what the service connects to.
    with access.begin(asked) as act:
        _lock_new(asked, act, organization, draft, proof)
    providers.fetch(asked, draft)
    with providers.refusing_conflicts(), access.begin(asked) as act:
        _lock_new(asked, act, organization, draft, proof)
        providers.insert(asked, act, draft)
        queries.replace_next_provider(act, organization_id=organization.id, provider_id=draft.id)


def change(
    asked: Asked, organization: VisibleOrganization, provider: str, body: JsonObject
) -> dict[str, Any]:
    """Change a provider, and return its object. An owner turns it on once it has signed the owner in."""
    organization = access.admit(asked, organization, OWNER)
    proof = access.give_proof(asked, organization, body, access.CHANGE)
    row = providers.found_provider(asked, provider, organization.id)
    change = providers.planned(asked, row, body)
    if change.is_read_anew:
        with access.begin(asked) as act:
            _lock_changed(asked, act, organization, change, proof)
        providers.fetch_again(asked, change)
    with providers.refusing_conflicts(), access.begin(asked) as act:
        facts, before = _lock_changed(asked, act, organization, change, proof)
        with access.keeping_a_way_in(asked, act, facts):
            providers.update(asked, act, change, before, by_owner=not access.is_operator(asked))
    return providers.finished(asked, change)


def delete(asked: Asked, organization: VisibleOrganization, provider: str, body: JsonObject) -> None:
    """Delete a provider. The memberships that it added end, but the last owner's."""
    organization = access.admit(asked, organization, OWNER)
    row = providers.found_provider(asked, provider, organization.id)
    change(asked, organization, row.id, {**body, "enabled": False})
    providers.remove(asked, row, by_owner=not access.is_operator(asked))


def begin_test(asked: Asked, row: "queries.SelectIdentityProvider", flow: NewFlow) -> None:
    """Begin a sign-in of an owner, after a fresh proof, at a provider that may be off, unless an operator has
    disabled it.
    """
    with acts.begin(asked.db) as act:
        act.share_provider(row.id)
        act.lock_users([asked.caller.user_id])
        caller = admit_caller(asked, act, access.CHANGE)
        facts = providers.facts_of(act, row.id)
        member = queries.select_membership_role(act, organization_id=row.organization_id, user_id=caller.id)
        if member is None or member.role != OWNER:
            raise ApiError("organization.insufficient_permissions")
        if facts.is_blocked:
            raise ApiError("owner.sso_provider_disabled")
        domain = identities.domain_of(caller.email if caller.email_proved else None)
        if refusal := identities.refusal_of_adoption(caller, domain, facts.domains):
            raise ApiError(refusal)
        write_flow_of_caller(asked, act, flow)


def _lock_new(
    asked: Asked, act: Act, organization: VisibleOrganization, draft: Draft, proof: Proof | None
) -> None:
    """Lock the organization. Refuse a new provider of domains that are not proved, beyond the limit, or with
    an id other than the next one: somebody may have connected a provider since.
    """
    facts, _ = access.lock(asked, act, organization, access.CHANGE, proof=proof)
    if not draft.is_imported and draft.id != facts.next_provider_id:
        raise ApiError("redirect_uri.validation_failed")
    _check_domains(asked, act, organization, draft.provider, ())
    present = queries.list_providers_of_organization(act, organization_id=organization.id)
    if len(present) >= organizations.MOST_PROVIDERS:
        raise ApiError("too_many_providers")


def _lock_changed(
    asked: Asked, act: Act, organization: VisibleOrganization, change: PlannedChange, proof: Proof | None
) -> "tuple[OrganizationFacts, queries.SelectProviderFacts]":
    """Lock a provider and its organization, and return their facts. Refuse what the caller may not change."""
    act.lock_provider(change.row.id)
    facts, _ = access.lock(asked, act, organization, access.CHANGE, proof=proof)
    before = providers.facts_before(act, change)
    _check_domains(asked, act, organization, change.provider, before.domains)
    if access.is_operator(asked):
        return facts, before
    # Another issuer is another provider, which no owner has tested.
    is_other = change.provider.issuer != before.issuer
    turns_on = change.provider.enabled and (not before.enabled or is_other)
    is_own = f"{PREFIX}{change.row.id}" in asked.caller.providers
    if refusal := organizations.refusal_of_owners_change(before, turns_on=turns_on, is_own_session=is_own):
        raise ApiError(refusal)
    return facts, before


def _check_domains(
    asked: Asked, act: Act, organization: VisibleOrganization, provider: WantedProvider, kept: Collection[str]
) -> None:
    """Refuse a domain that the organization has not proved. A provider keeps others from an operator."""
    proved = access.proved_domains(asked, act, organization.id)
    if not set(provider.domains).difference(kept) <= set(proved):
        raise ApiError("domain_not_proved")
