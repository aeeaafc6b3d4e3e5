"""Adding, changing and deleting customers' providers, and moving users to them.

An operator administers all of them by the API, console and commands, an owner those of the organization
(auth/extensions/organizations/sign_in.py).
"""

import json
import uuid
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any, NamedTuple, TypeAlias

from psycopg2.errors import UniqueViolation

from auth.core.providers.customers import in_one_spelling, redirect_uri
from auth.core.providers.places import is_on_this_machine
from auth.core.text.names import PREFIX
from auth.flows import ends, memberships, organizations
from auth.flows.admin import provider_settings, targets
from auth.flows.admin.provider_settings import WantedProvider
from auth.flows.messages.outgoing import notify
from auth.flows.sign_in.oauth import name_of_customers
from auth.rules import identities
from auth.web import audit
from auth.web.asked import Asked
from auth.web.errors import ApiError, found
from auth.web.fields import is_uuid
from sql import Database, Runner, acts, queries
from sql.acts import Act

# The prefix of identifiers.
IDENTIFIER = "custom:"
# The start of a list of providers.
FIRST = {"after": "-infinity", "after_id": "00000000-0000-0000-0000-000000000000"}
_BATCH = 200
_NOTICES = {"provider_enabled": "on", "provider_disabled": "off"}

_Described: TypeAlias = (
    "queries.SelectIdentityProvider | queries.ListIdentityProviders | queries.ListProvidersOfOrganization"
)


class Draft(NamedTuple):
    """A new provider. Its settings are checked outside the act that writes it."""

    id: str
    identifier: str
    provider: WantedProvider
    secret: str
    sealed: bytes
    organization_id: str | None
    is_blocked: bool = False
    is_imported: bool = False

    @property
    def name(self) -> str:
        return self.provider.name


class PlannedChange(NamedTuple):
    """A change of a provider. Its settings are checked outside the act that writes them."""

    row: "queries.SelectIdentityProvider"
    provider: WantedProvider
    sealed: bytes
    body: Mapping[str, Any]

    @property
    def has_secret(self) -> bool:
        return "client_secret" in self.body

    @property
    def moves(self) -> bool:
        """Whether the provider gets another issuer."""
        return self.provider.issuer != in_one_spelling(self.row.issuer)

    @property
    def is_read_anew(self) -> bool:
        """Whether the provider gets another document."""
        return self.moves or self.provider.discovery_url != self.row.discovery_url


def select(db: Database, name: str) -> "queries.SelectIdentityProvider | None":
    """Return the row of an identifier or an id."""
    if "\0" in name:  # of a path, which Postgres refuses
        return None
    id = name if is_uuid(name) else None
    return queries.select_identity_provider(db, identifier=name, id=id)


def found_provider(
    asked: Asked, name: str, organization_id: str | None = None
) -> "queries.SelectIdentityProvider":
    """Return the row of a provider. With an organization, refuse the provider of another one."""
    row = found(select(asked.db, name), "custom_provider_not_found")
    if organization_id and row.organization_id != organization_id:
        raise ApiError("custom_provider_not_found")
    return row


def facts_of(act: Act, id: str) -> "queries.SelectProviderFacts":
    """Return the facts about a locked provider."""
    return found(act.read(queries.select_provider_facts, id=id), "custom_provider_not_found")


def described(asked: Asked, row: _Described) -> dict[str, Any]:
    """Return the object of a provider, with the redirect URI for the customer to register."""
    object: dict[str, Any] = json.loads(row.provider_object)
    return object | {"redirect_uri": redirect_uri(asked.settings.base_url, row.id)}


def listed(asked: Asked) -> "list[queries.ListIdentityProviders]":
    """Return the providers, oldest first."""
    return queries.list_identity_providers(asked.db, **FIRST, most=1000)


def create(asked: Asked, body: Mapping[str, Any]) -> dict[str, Any]:
    """Add a provider of the operator, and return its object."""
    draft = drafted(asked, body)
    fetch(asked, draft)
    with refusing_conflicts(), targets.begin(asked) as act:
        insert(asked, act, draft)
    return described(asked, found_provider(asked, draft.id))


def drafted(
    asked: Asked, body: Mapping[str, Any], organization_id: str | None = None, *, id: str | None = None
) -> Draft:
    """Check a body, and return a new provider. Those of organizations have an `id` before."""
    id, secret = id or str(uuid.uuid4()), body["client_secret"]
    identifier = body.get("identifier") or f"{IDENTIFIER}{id}"
    provider = provider_settings.wanted(asked, body)
    return Draft(id, identifier, provider, secret, asked.parts.sealer.seal(secret, id), organization_id)


def fetch(asked: Asked, draft: Draft) -> None:
    """Refuse a new provider whose document the service cannot fetch."""
    provider_settings.fetch(asked, draft.id, draft.provider, draft.secret, draft.organization_id)


def insert(asked: Asked, act: Act, draft: Draft) -> None:
    """Write a new provider, and tell the owners of its organization unless it is imported."""
    id, domains = draft.id, draft.provider.domains
    columns = draft.provider._asdict() | {"client_secret": draft.sealed, "is_blocked": draft.is_blocked}
    columns |= {"organization_id": draft.organization_id, "session_id": asked.user and asked.user.session_id}
    queries.insert_identity_provider(act, id=id, identifier=draft.identifier, **columns)
    queries.add_domains_of_provider(act, id=id, domains=domains)
    organization = organization_of(act, draft.organization_id)
    _record(act, "provider_added", draft, domains, organization)
    if not draft.is_imported:
        _tell_owners(asked, act, organization, "added")


def change(asked: Asked, name: str, body: Mapping[str, Any]) -> dict[str, Any]:
    """Change the members of a body, and return the object. Disabling ends what the provider opened."""
    change = planned(asked, found_provider(asked, name), body)
    if change.is_read_anew:
        with targets.begin(asked) as act:
            act.lock_provider(change.row.id)
            facts_before(act, change)
        fetch_again(asked, change)
    with refusing_conflicts(), targets.begin(asked) as act:
        act.lock_provider(change.row.id)
        update(asked, act, change, facts_before(act, change), by_owner=False)
    return finished(asked, change)


def planned(asked: Asked, row: "queries.SelectIdentityProvider", body: Mapping[str, Any]) -> PlannedChange:
    """Check a body, and return the change of a provider."""
    if asked.is_key and (problem := identities.problem_of_key(row, body)):
        raise ApiError("insufficient_permissions", problem)
    provider = provider_settings.wanted(asked, body, row)
    before = row._replace(issuer=in_one_spelling(row.issuer))
    secret = body.get("client_secret")
    if secret is None and (problem := identities.problem_without_secret(before, provider)):
        raise ApiError("validation_failed", problem)
    sealed = bytes(row.client_secret) if secret is None else asked.parts.sealer.seal(secret, row.id)
    return PlannedChange(row, provider, sealed, body)


def fetch_again(asked: Asked, change: PlannedChange) -> None:
    """Refuse another document that the service cannot fetch."""
    row, secret = change.row, change.body.get("client_secret", "")
    provider_settings.fetch(asked, row.id, change.provider, secret, row.organization_id)


def facts_before(act: Act, change: PlannedChange) -> "queries.SelectProviderFacts":
    """Return the facts about a locked provider. Refuse if it has changed since it was read, or can't move."""
    facts = facts_of(act, change.row.id)
    # Its organization may have given a domain up since we read the row.
    if (facts.version, facts.domains) != (change.row.version, change.row.domains):
        raise ApiError("stale.validation_failed")
    if change.moves and facts.has_identities:
        details = "issuer: can't change while users sign in with this provider; add another one"
        raise ApiError("validation_failed", details)
    # Another issuer, document or client needs the secret, which alone says that another test is needed.
    return facts._replace(tried_at=None) if change.has_secret else facts


def update(
    asked: Asked, act: Act, change: PlannedChange, before: "queries.SelectProviderFacts", *, by_owner: bool
) -> None:
    """Write a change of a provider with the facts `before`."""
    row, provider = change.row, change.provider
    # An owner cannot turn on what an operator disables.
    is_blocked = before.is_blocked
    if before.organization_id and "enabled" in change.body and not by_owner:
        is_blocked = not provider.enabled
    turned = identities.turned(before, is_enabled=provider.enabled, is_blocked=is_blocked)
    if asked.is_key and turned:
        has_administrators = queries.select_has_administrators(act, id=row.id).has_administrators
        if refusal := identities.refusal_of_key(turned, has_administrators=has_administrators):
            raise ApiError(refusal)
    if turned == "provider_enabled" and not asked.settings.serves_this_machine:
        _refuse_out_of_place(act, before, provider)
    columns = provider._asdict() | {"client_secret": change.sealed}
    columns |= {"is_blocked": is_blocked, "tried_at": before.tried_at}
    columns["session_id"] = asked.user and asked.user.session_id
    queries.update_identity_provider(act, id=row.id, **columns)
    queries.remove_domains_of_provider(act, id=row.id, domains=provider.domains)
    queries.add_domains_of_provider(act, id=row.id, domains=provider.domains)
    if change.is_read_anew or not provider.enabled:
        queries.delete_flows_of_provider(act, id=row.id)
    if change.moves or turned == "provider_disabled":
        # No user moves to this issuer any more.
        queries.delete_adoptions_of_provider(act, id=row.id)
    _record_update(asked, act, change, turned, was_enabled=before.enabled)


def _refuse_out_of_place(
    act: Act, before: "queries.SelectProviderFacts", provider: provider_settings.WantedProvider
) -> None:
    """Refuse to turn on a provider that works only while no other machine reaches the service."""
    domains = queries.select_has_domain_by_command(
        act, organization_id=before.organization_id, domains=provider.domains
    )
    if is_on_this_machine(provider.issuer) or domains.has_domain_by_command:
        why = "its issuer is this machine, or a command proved its domain"
        raise ApiError("validation_failed", f"enabled: {why}, {provider_settings.WORKS_HERE}")


def _record_update(
    asked: Asked, act: Act, change: PlannedChange, turned: identities.Turned, *, was_enabled: bool
) -> None:
    """Write the entries of the audit log, and a notice to the owners if the change matters to a sign-in."""
    row, provider = change.row, change.provider
    # Beside `enabled`, a body may have a proof.
    is_changed = change.body.keys() & {*WantedProvider._fields, "client_secret"} - {"enabled"}
    entries = ["provider_changed"] if is_changed else []
    organization = organization_of(act, row.organization_id)
    for entry in [*entries, turned] if turned else entries:
        _record(act, entry, row._replace(name=provider.name), provider.domains, organization)
    if turned:
        _tell_owners(asked, act, organization, _NOTICES[turned])
        return
    # Another document or client needs the secret, so `has_secret` covers both.
    before = (row.acceptable_client_ids, set(row.domains))
    admits_others = change.has_secret or before != (provider.acceptable_client_ids, set(provider.domains))
    if was_enabled and admits_others:
        _tell_owners(asked, act, organization, "changed")


def finished(asked: Asked, change: PlannedChange) -> dict[str, Any]:
    """Return the object of a changed provider. If it is disabled or has moved, end what it opened before."""
    if change.moves or not change.provider.enabled:
        ends.end_what_is_over(asked.db)
    return described(asked, found_provider(asked, change.row.id))


def delete(asked: Asked, name: str) -> None:
    """Disable a provider, and remove it with the identities of its users."""
    row = found_provider(asked, name)
    # This admits the caller. The removal cannot: the change may have ended the caller's session.
    change(asked, row.id, {"enabled": False})
    remove(asked, row)


def remove(asked: Asked, row: "queries.SelectIdentityProvider", *, by_owner: bool = False) -> None:
    """Delete a disabled provider with the identities of its users, and the memberships that it added."""
    while queries.remove_users_of_provider(asked.db, id=row.id, batch=_BATCH) == _BATCH:
        pass
    while memberships.end_memberships_of_provider(asked, row.id):
        pass
    with acts.begin(asked.db) as act:
        act.lock_provider(row.id)
        facts = facts_of(act, row.id)
        if facts.enabled or facts.has_identities or (by_owner and facts.is_blocked):
            # Another administrator has enabled it again, or the operator has disabled it for its owners.
            raise ApiError("stale.validation_failed")
        queries.delete_identity_provider(act, id=row.id)
        organization = organization_of(act, row.organization_id)
        _record(act, "provider_deleted", row, row.domains, organization)
    # This ends the sessions of owners who tested a provider that was never on.
    ends.end_what_is_over(asked.db)


def adopt(asked: Asked, name: str, email: str) -> None:
    """Let a provider sign in a user with a proved address of its domains, who keeps all other ways."""
    row = found_provider(asked, name)
    with targets.on_holders(asked, [email], before=lambda act: act.share_provider(row.id)) as (act, ids):
        facts = facts_of(act, row.id)
        if facts.issuer != row.issuer:
            raise ApiError("custom_provider_not_found")
        user_id = next(iter(ids), None)
        person = found(queries.select_person(act, user_id=user_id, session_id=None), "email.user_not_found")
        domain = email.rpartition("@")[2]
        if refusal := identities.refusal_of_adoption(person, domain, facts.domains):
            if refusal == "admin.user_sso_conflict":
                asked.noted.note(user_id=person.id)
            raise ApiError(refusal)
        queries.adopt_user(act, user_id=person.id, provider_id=row.id)
        if person.email_proved:
            provider = f"{PREFIX}{row.id}"
            shown = {"provider": provider, "provider_name": name_of_customers(act, provider)}
            notify(asked, act, person, "identity_linked", **shown)
        details = {"provider_id": row.id, "provider": row.identifier}
        audit.record(act, person.id, person.email, ["user_adopted"], [], **details)


@contextmanager
def refusing_conflicts() -> Iterator[None]:
    """Refuse an identifier or a domain of another provider."""
    try:
        yield
    except UniqueViolation as error:
        is_domain = error.diag.constraint_name == "identity_provider_domains_pkey"
        raise ApiError("conflict", what="domain" if is_domain else "identifier") from None


def organization_of(runner: Runner, id: str | None) -> "queries.SelectOrganization | None":
    """Return the organization of a provider, if it has one."""
    return queries.select_organization(runner, id=id, slug=None) if id else None


def _tell_owners(
    asked: Asked, act: Act, organization: "queries.SelectOrganization | None", change: str
) -> None:
    """Write a notice about the sign-in of the provider's organization to its owners."""
    if organization and organizations.is_on(asked.settings):
        organizations.tell_owners(asked, act, organization, "organization_sign_in", change=change)


def _record(
    act: Act,
    change: str,
    provider: "Draft | queries.SelectIdentityProvider",
    domains: list[str],
    organization: "queries.SelectOrganization | None",
) -> None:
    """Write an entry of the audit log, which the owners of the provider's organization read, too."""
    details: dict[str, Any] = {
        "provider_id": provider.id,
        "provider": provider.identifier,
        "domains": domains,
    }
    # The log names the provider when it is deleted.
    details["provider_name"] = provider.name
    if organization:
        organizations.record(act, change, organization, **details)
    else:
        audit.record(act, None, None, [change], [], **details)
