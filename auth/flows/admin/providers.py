"""Adding, changing and deleting providers of customers, and moving users to them.

An operator does so by the API, console and commands, with all providers; the owner of an organization with
its own ones.
"""

import json
import uuid
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from typing import Any, TypeAlias

from psycopg2.errors import UniqueViolation

from auth.core.providers.customers import in_one_spelling
from auth.core.text.names import PREFIX
from auth.flows import organizations
from auth.flows.admin import provider_settings, targets
from auth.flows.admin.provider_settings import WantedProvider
from auth.flows.messages.outgoing import notify
from auth.rules import identities
from auth.rules.ends import Reason
from auth.web import audit
from auth.web.asked import Asked
from auth.web.errors import ApiError, found
from auth.web.fields import is_uuid
from sql import Database, acts, queries
from sql.acts import Act

# The start of a list of providers.
FIRST = {"after": "-infinity", "after_id": "00000000-0000-0000-0000-000000000000"}
_MOST_LISTED = 1000
_BATCH = 200
_TOLD = {"provider_enabled": "on", "provider_disabled": "off"}

_Described: TypeAlias = (
    "queries.SelectIdentityProvider | queries.ListIdentityProviders | queries.ListProvidersOfOrganization"
)


@dataclass(frozen=True)
class Door:
    """Through which providers are administered: all of them, or those of an organization."""

    # Begins an act, and locks the provider of an id before users.
    begin: Callable[[str], AbstractContextManager[Act]]
    organization_id: str | None = None
    # What an operator disables, no owner of the organization turns on again.
    is_owners: bool = False
    # Runs in the act, before it writes: refuses what the provider, None for a new one, is changed to.
    check: Callable[[Act, "queries.SelectProviderFacts | None", WantedProvider, str], None] = lambda *_: None


def of_operator(asked: Asked) -> Door:
    @contextmanager
    def begin(id: str) -> Iterator[Act]:
        with targets.begin(asked) as act:
            act.lock_provider(id)
            yield act

    return Door(begin)


def select(db: Database, name: str) -> "queries.SelectIdentityProvider | None":
    """Return the row of an identifier or an id."""
    if "\0" in name:  # of a path, which Postgres refuses
        return None
    id = name if is_uuid(name) else None
    return queries.select_identity_provider(db, identifier=name, id=id)


def found_provider(
    asked: Asked, name: str, organization_id: str | None = None
) -> "queries.SelectIdentityProvider":
    """Return the row of a provider; of an organization's own one, if there is an organization."""
    row = found(select(asked.db, name), "custom_provider_not_found")
    if organization_id and row.organization_id != organization_id:
        raise ApiError("custom_provider_not_found")
    return row


def facts_of(act: Act, id: str) -> "queries.SelectProviderFacts":
    """Return what decides about a locked provider."""
    return found(act.read(queries.select_provider_facts, id=id), "custom_provider_not_found")


def described(asked: Asked, row: _Described) -> dict[str, Any]:
    """Return the object of a provider, with the redirect URI for the customer to register."""
    shown: dict[str, Any] = json.loads(row.provider_object)
    return shown | {"redirect_uri": f"{asked.settings.base_url}/providers/{row.id}/callback"}


def listed(asked: Asked) -> "list[queries.ListIdentityProviders]":
    """Return the providers, oldest first."""
    return queries.list_identity_providers(asked.db, **FIRST, most=_MOST_LISTED)


def create(
    asked: Asked,
    body: Mapping[str, Any],
    door: Door | None = None,
    *,
    id: str | None = None,
    is_blocked: bool = False,
) -> dict[str, Any]:
    """Add a provider, and return its object. An import gives the `id`, may block it, and tells no owner."""
    door, is_imported = door or of_operator(asked), id is not None
    id, secret = id or str(uuid.uuid4()), body["client_secret"]
    identifier = body.get("identifier") or f"custom:{id}"
    provider = provider_settings.wanted(asked, body)
    # Before it is fetched: any user can found an organization, and would choose what the service connects to.
    if door.organization_id:
        with door.begin(id) as act:
            door.check(act, None, provider, id)
    provider_settings.fetch(asked, id, provider, secret, door.organization_id)
    columns = provider._asdict() | {"client_secret": asked.parts.sealer.seal(secret, id)}
    columns |= {"organization_id": door.organization_id, "is_blocked": is_blocked}
    columns["session_id"] = asked.user and asked.user.session_id
    try:
        with door.begin(id) as act:
            door.check(act, None, provider, id)
            queries.insert_identity_provider(act, id=id, identifier=identifier, **columns)
            queries.add_domains_of_provider(act, id=id, domains=provider.domains)
            organization = _organization(act, door.organization_id)
            _record(act, "provider_added", id, identifier, provider.domains, organization)
            if not is_imported:
                _tell_owners(asked, act, organization, "added")
    except UniqueViolation as error:
        raise _conflict(error) from None
    return described(asked, found_provider(asked, id))


def change(asked: Asked, name: str, body: Mapping[str, Any], door: Door | None = None) -> dict[str, Any]:
    """Change the members of a body, and return the object. Disabling ends everything of the users."""
    door = door or of_operator(asked)
    row = found_provider(asked, name, door.organization_id)
    has_secret = "client_secret" in body
    if asked.is_key and (problem := identities.problem_of_key(row, body)):
        raise ApiError("insufficient_permissions", problem)
    provider = provider_settings.wanted(asked, body, row)
    before = row._replace(issuer=in_one_spelling(row.issuer))
    if not has_secret and (problem := identities.problem_without_secret(before, provider)):
        raise ApiError("validation_failed", problem)
    moves = provider.issuer != before.issuer
    is_read_anew = moves or provider.discovery_url != before.discovery_url
    if is_read_anew:
        with door.begin(row.id) as act:
            _checked(act, door, row, provider, has_secret=has_secret)
        provider_settings.fetch(asked, row.id, provider, body.get("client_secret", ""), row.organization_id)
    sealed = (
        asked.parts.sealer.seal(body["client_secret"], row.id) if has_secret else bytes(row.client_secret)
    )
    try:
        with door.begin(row.id) as act:
            known = _checked(act, door, row, provider, has_secret=has_secret)
            is_blocked = known.is_blocked
            if known.organization_id and "enabled" in body and not door.is_owners:
                is_blocked = not provider.enabled
            turned = identities.turned(known, is_enabled=provider.enabled, is_blocked=is_blocked)
            _check_key(asked, act, row.id, turned)
            disabled_at = identities.disabled_at(
                turned, is_enabled=provider.enabled, ended_before=known.ended_before, now=known.now
            )
            columns = provider._asdict() | {"client_secret": sealed, "disabled_at": disabled_at}
            columns |= {"is_blocked": is_blocked, "tried_at": known.tried_at}
            columns["session_id"] = asked.user and asked.user.session_id
            queries.update_identity_provider(act, id=row.id, **columns)
            queries.remove_domains_of_provider(act, id=row.id, domains=provider.domains)
            queries.add_domains_of_provider(act, id=row.id, domains=provider.domains)
            if is_read_anew or not provider.enabled:
                queries.delete_flows_of_provider(act, id=row.id)
            if moves or turned == "provider_disabled":
                # Nobody moves users to this issuer any more.
                queries.delete_adoptions_of_provider(act, id=row.id)
            # Beside `enabled`, a body may have a proof.
            is_changed = body.keys() & {*WantedProvider._fields, "client_secret"} - {"enabled"}
            done = ["provider_changed"] if is_changed else []
            organization = _organization(act, row.organization_id)
            for entry in [*done, turned] if turned else done:
                _record(act, entry, row.id, row.identifier, provider.domains, organization)
            if turned:
                _tell_owners(asked, act, organization, _TOLD[turned])
            elif known.enabled and (has_secret or not _admits_the_same(row, provider)):
                _tell_owners(asked, act, organization, "changed")
    except UniqueViolation as error:
        raise _conflict(error) from None
    if not provider.enabled:
        end_users_of_disabled(asked)
    return described(asked, found_provider(asked, row.id))


def _checked(
    act: Act,
    door: Door,
    row: "queries.SelectIdentityProvider",
    provider: WantedProvider,
    *,
    has_secret: bool,
) -> "queries.SelectProviderFacts":
    """Return the facts about a provider. Refuse what it may not be changed to."""
    present = facts_of(act, row.id)
    # Its organization may have given a domain up since we read the row.
    if (present.version, present.domains) != (row.version, row.domains):
        raise ApiError("stale.validation_failed")
    if provider.issuer != in_one_spelling(row.issuer) and present.has_identities:
        details = "issuer: can't change while users sign in with this provider; add another one"
        raise ApiError("validation_failed", details)
    # Another issuer, document or client needs the secret, which alone says that another trial is needed.
    if has_secret:
        present = present._replace(tried_at=None)
    door.check(act, present, provider, row.id)
    return present


def _check_key(asked: Asked, act: Act, id: str, turned: identities.Turned) -> None:
    """Refuse an administrative key that turns off a provider of an administrator."""
    if turned is None or not asked.is_key:
        return
    has_administrators = queries.select_has_administrators(act, id=id).has_administrators
    if refusal := identities.refusal_of_key(turned, has_administrators=has_administrators):
        raise ApiError(refusal)


def end_users_of_disabled(asked: Asked) -> None:
    disabled: Reason = "provider_disabled"
    while queries.end_users_of_disabled_providers(asked.db, batch=_BATCH, reason=disabled) == _BATCH:
        pass


def delete(asked: Asked, name: str, door: Door | None = None) -> None:
    """Disable a provider, end everything of its users and the memberships that it added, and delete it with
    their identities.

    The first act admits the caller, whose session ends then if the provider opened it.
    """
    door = door or of_operator(asked)
    row = found_provider(asked, name, door.organization_id)
    change(asked, row.id, {"enabled": False}, door)
    while queries.remove_users_of_provider(asked.db, id=row.id, batch=_BATCH) == _BATCH:
        pass
    while organizations.end_memberships_of_provider(asked, row.id):
        pass
    with acts.begin(asked.db) as act:
        act.lock_provider(row.id)
        known = facts_of(act, row.id)
        if known.enabled or known.has_identities or (door.is_owners and known.is_blocked):
            # Another administrator has enabled it again, or the operator has disabled it for its owners.
            raise ApiError("stale.validation_failed")
        queries.delete_identity_provider(act, id=row.id)
        organization = _organization(act, row.organization_id)
        _record(act, "provider_deleted", row.id, row.identifier, row.domains, organization)


def adopt(asked: Asked, name: str, email: str) -> str:
    """Let a provider sign in a user with a proved address of its domains, and return the user's id.

    The user gets a notice, and keeps all other ways to sign in.
    """
    row = found_provider(asked, name)
    with targets.on_holders(asked, [email], before=lambda act: act.share_provider(row.id)) as (act, ids):
        held = facts_of(act, row.id)
        if held.issuer != row.issuer:
            raise ApiError("custom_provider_not_found")
        user_id = next(iter(ids), None)
        known = found(queries.select_person(act, user_id=user_id, session_id=None), "email.user_not_found")
        domain = email.rpartition("@")[2]
        if refusal := identities.refusal_of_adoption(known, domain, held.domains):
            if refusal == "admin.user_sso_conflict":
                asked.noted.note(user_id=known.id)
            raise ApiError(refusal)
        queries.adopt_user(act, user_id=known.id, provider_id=row.id)
        if known.email_proved:
            notify(asked, act, known, "identity_linked", provider=f"{PREFIX}{row.id}")
        details = {"provider_id": row.id, "provider": row.identifier}
        audit.record(act, known.id, known.email, ["user_adopted"], [], **details)
    return known.id


def _admits_the_same(row: "queries.SelectIdentityProvider", provider: WantedProvider) -> bool:
    """Whether a provider signs in the same people as before, if it has the same document and client."""
    before = (row.acceptable_client_ids, set(row.domains))
    return before == (provider.acceptable_client_ids, set(provider.domains))


def _conflict(error: UniqueViolation) -> ApiError:
    is_domain = error.diag.constraint_name == "identity_provider_domains_pkey"
    return ApiError("conflict", what="domain" if is_domain else "identifier")


def _organization(act: Act, id: str | None) -> "queries.SelectOrganization | None":
    """Return the organization of a provider, if it has one."""
    return queries.select_organization(act, id=id, slug=None) if id else None


def _tell_owners(
    asked: Asked, act: Act, organization: "queries.SelectOrganization | None", change: str
) -> None:
    """Write a notice about the sign-in of the provider's organization to its owners."""
    if organization and organizations.is_on(asked.settings):
        organizations.tell_owners(asked, act, organization, "organization_sign_in", change=change)


def _record(
    act: Act,
    change: str,
    id: str,
    identifier: str,
    domains: list[str],
    organization: "queries.SelectOrganization | None",
) -> None:
    """Write an entry of the audit log, which the owners of the provider's organization read, too."""
    details: dict[str, Any] = {"provider_id": id, "provider": identifier, "domains": domains}
    if organization:
        organizations.record(act, change, organization, **details)
    else:
        audit.record(act, None, None, [change], [], **details)
