"""Signing in with providers: the flows in progress, and the identities that they return."""

import uuid
from collections.abc import Mapping
from typing import NamedTuple

from auth.core import constants
from auth.core.json_bodies import JsonObject
from auth.core.providers import CAUSES_OF_IDENTITY, ProviderError
from auth.core.providers.client import ExternalIdentity, Provider, said
from auth.core.settings.presets import ALIASES
from auth.core.text import names
from auth.core.text.names import PREFIX
from auth.core.tokens import one_time
from auth.core.tokens.derived_keys import CannotOpen
from auth.rules import identities
from auth.web.asked import Asked
from auth.web.errors import ApiError
from sql import Database, Runner, Transaction, queries

_PROVIDER_ERRORS = {"access_denied", "temporarily_unavailable", "server_error"}


class Initiator(NamedTuple):
    """The user, and the session, that began a flow at a customer's provider: to test it, or to move to it."""

    user_id: str
    session_id: str | None


class NewFlow(NamedTuple):
    """A flow at a provider that is bound to a browser, before it is written."""

    provider: Provider
    state: str
    secrets: JsonObject
    redirect_to: str
    browser_hash: bytes | None


class ProviderRefusal(ApiError):
    def __init__(self, error: str | None, key: str = "bad_oauth_callback") -> None:
        super().__init__(key)
        self.error = error if error in _PROVIDER_ERRORS else "server_error"


def find_provider(asked: Asked, name: str, *, is_test: bool = False) -> Provider | None:
    """Return the provider of a name or alias, perhaps a customer's. An owner tests one that is off."""
    provider = asked.parts.providers.get(name) or asked.parts.providers.get(ALIASES.get(name, ""))
    others = (each.find_provider(name, is_test=is_test) for each in asked.parts.extensions)
    return provider or next(filter(None, others), None)


def name_of_customers(on: Runner, provider: str) -> str | None:
    """Return the name of a customer's provider for texts: its owner chose it. None for other providers."""
    id = provider.removeprefix(PREFIX)
    row = queries.select_provider_name(on, id=id) if id != provider else None
    return names.organization(row.name) if row else None


def provider_named(asked: Asked, name: str, *, is_test: bool = False) -> Provider:
    provider = find_provider(asked, name, is_test=is_test)
    if provider is None:
        details = "provider: is not set up here; docs/oauth.md says how"
        raise ApiError("oauth_provider_not_supported", details)
    return provider


def initiator_of(flow: "queries.SpendOauthFlow") -> Initiator | None:
    """Return the user who alone is signed in by a flow at a customer's provider, if one began it."""
    is_of_customer = flow.provider.startswith(PREFIX)
    return Initiator(flow.user_id, flow.session_id) if is_of_customer and flow.user_id else None


def new_secrets(scopes: str | None) -> JsonObject:
    return {"nonce": one_time.new_token(), "code_verifier": one_time.new_token(), "scopes": scopes}


def write_flow(
    asked: Asked,
    db: Database | Transaction,
    provider: Provider,
    state: str,
    secrets: JsonObject,
    *,
    redirect_to: str | None = None,
    code_challenge: str | None = None,
    browser_hash: bytes | None = None,
    user_id: str | None = None,
    session_id: str | None = None,
) -> None:
    """Write a flow of a `browser_hash`, or of a `user_id` and `session_id` to link an identity."""
    flow_id = str(uuid.uuid4())
    queries.insert_oauth_flow(
        db,
        id=flow_id,
        state_hash=one_time.hash_token(state),
        provider=provider.name,
        secrets=asked.parts.sealer.seal_json(secrets, flow_id),
        lifetime=constants.FLOW_LIFETIME,
        redirect_to=redirect_to,
        code_challenge=code_challenge,
        browser_hash=browser_hash,
        user_id=user_id,
        session_id=session_id,
    )


def write_flow_of_caller(asked: Asked, act: Transaction, flow: NewFlow) -> None:
    """Write a flow of the caller's session at a customer's provider, which signs in nobody else."""
    write_flow(
        asked,
        act,
        flow.provider,
        flow.state,
        flow.secrets,
        redirect_to=flow.redirect_to,
        browser_hash=flow.browser_hash,
        user_id=asked.caller.user_id,
        session_id=asked.caller.session_id,
    )


def identify(
    asked: Asked, flow: "queries.SpendOauthFlow", callback_name: str | None, query: Mapping[str, str]
) -> ExternalIdentity:
    """Return the identity that a callback is about."""
    provider = provider_named(asked, flow.provider, is_test=initiator_of(flow) is not None)
    if provider.callback_name != callback_name:
        # Do not send another provider's code to this one (mix-up attack).
        provider.log_failure("the browser returned to another provider's redirect URI")
        raise ApiError("bad_oauth_callback")
    if "error" in query or "code" not in query:
        refusal = ProviderRefusal(provider.error_of(query))
        # A refusal of the user is no failure of the provider.
        if refusal.error == "access_denied":
            refusal.values = {"cause": "access_denied"}
        else:
            refusal.details = said(query.get("error"), query.get("error_description")) or "no code"
            provider.log_failure(refusal.details)
        raise refusal
    try:
        secrets = asked.parts.sealer.open_json(flow.secrets, flow.id)
        return provider.identify(query, code_verifier=secrets["code_verifier"], nonce=secrets["nonce"])
    except CannotOpen:
        raise ApiError("bad_oauth_state") from None
    except ProviderError as error:
        cause = error.cause or ""
        raise ApiError("bad_oauth_callback", str(error), cause=cause, named=error.named) from None


def explained(asked: Asked, flow: "queries.SpendOauthFlow", refusal: ApiError, *, is_trial: bool) -> ApiError:
    """Return the refusal of a callback with its cause, if the browser's user is told it, and note it for the
    log of the provider's organization. A flow of an initiator is a trial of the provider, or a move to it.
    """
    values, refusal.values = refusal.values, {}
    cause, initiator = values.get("cause"), initiator_of(flow)
    if not flow.provider.startswith(PREFIX) or not (cause or initiator):
        return refusal
    id, user_id = flow.provider.removeprefix(PREFIX), initiator and initiator.user_id
    row = queries.select_organization_of_provider(asked.db, provider_id=id, user_id=user_id)
    reader = row and identities.reader_of_cause(
        role=row.role, is_trial=is_trial, is_signed=cause in CAUSES_OF_IDENTITY
    )
    if row is None or reader is None:
        return refusal
    asked.noted.note(user_id=user_id, provider=flow.provider)
    if row.organization_id:
        asked.note_details(organization={"id": row.organization_id, "slug": row.slug})
    if cause:
        asked.note_details(because=cause)
        refusal.values = {**values, "reader": reader, "by": names.customers_provider(row.name)}
    return refusal
