"""Signing in with providers: the flows in progress, and the identities that they return.

A cookie binds each flow to its browser, against login CSRF.
"""

import uuid
from typing import Any

from flask import Response

from auth.core import promises
from auth.core.providers import ProviderError
from auth.core.providers.client import ExternalIdentity, Provider, said
from auth.core.settings.presets import ALIASES
from auth.core.tokens import one_time
from auth.core.tokens.derived_keys import CannotOpen
from auth.flows.sessions.token_response import redirect
from auth.flows.sign_in.destinations import redirect_with_error
from auth.web import cookies
from auth.web.context import latchkey
from auth.web.errors import ApiError
from sql import Database, Transaction, queries

# RFC 6749, section 4.1.2.1. The others are `access_denied`.
_ERRORS = {
    "bad_oauth_state": "invalid_request",
    "bad_oauth_callback": "server_error",
    "oauth_provider_not_supported": "server_error",
    "hook_failed": "temporarily_unavailable",
}
_PROVIDER_ERRORS = {"access_denied", "temporarily_unavailable", "server_error"}
# By whether the provider posts a form, with which browsers do not send a Lax cookie.
COOKIES = {False: "latchkey_flow", True: "latchkey_flow_post"}


class ProviderRefusal(ApiError):
    def __init__(self, error: str | None, key: str = "bad_oauth_callback") -> None:
        super().__init__(key)
        self.error = error if error in _PROVIDER_ERRORS else "server_error"


def find_provider(name: str) -> Provider | None:
    """Return the provider of a name: of the settings, also under an alias, or of a customer."""
    known = latchkey.providers.get(name) or latchkey.providers.get(ALIASES.get(name, ""))
    return known or next(filter(None, (each.find_provider(name) for each in latchkey.extensions)), None)


def provider_named(name: str) -> Provider:
    """Return the provider of a name. Raises `ApiError`."""
    provider = latchkey.providers.get(name) or find_provider(name)
    if provider is None:
        details = "provider: must be one of external_providers in /settings"
        raise ApiError("oauth_provider_not_supported", details)
    return provider


def new_secrets(scopes: str | None) -> dict[str, Any]:
    return {"nonce": one_time.new_token(), "code_verifier": one_time.new_token(), "scopes": scopes}


def begin_sign_in(
    provider: Provider,
    redirect_to: str | None,
    *,
    code_challenge: str | None = None,
    scopes: str | None = None,
    asks_again: bool = False,
    status: int,
) -> Response:
    """Begin a flow that is bound to this browser, and redirect it to the provider, or back with an error."""
    state, secrets = one_time.new_token(), new_secrets(scopes)
    browser = cookies.browser_secret(COOKIES[provider.posts_form])
    try:
        wish = {"asks_again": asks_again}
        response = redirect_to_provider(provider, state, secrets | wish, browser, status)
    except ProviderRefusal as refusal:
        response = redirect_with_refusal(redirect_to, refusal)
        response.status_code = status
        return response
    columns = {"redirect_to": redirect_to, "code_challenge": code_challenge}
    write_flow(latchkey.db, provider, state, secrets, browser_hash=one_time.hash_token(browser), **columns)
    return response


def write_flow(
    db: Database | Transaction, provider: Provider, state: str, secrets: dict[str, Any], **columns: Any
) -> None:
    """Write a flow of a `browser_hash`; or of a `user_id` and `session_id`, to link an identity."""
    flow_id = str(uuid.uuid4())
    names = ("browser_hash", "redirect_to", "code_challenge", "user_id", "session_id")
    queries.insert_oauth_flow(
        db,
        id=flow_id,
        state_hash=one_time.hash_token(state),
        provider=provider.name,
        secrets=latchkey.sealer.seal_json(secrets, flow_id),
        lifetime=promises.FLOW_LIFETIME,
        **dict.fromkeys(names) | columns,
    )


def spend_flow(state: str) -> "queries.SpendOauthFlow | None":
    """End the flow with this state and the browser's cookie, and return its row or None."""
    hashes = [one_time.hash_token(cookies.sent(name)) for name in COOKIES.values()]
    state_hash = one_time.hash_token(state)
    return queries.spend_oauth_flow(latchkey.db, state_hash=state_hash, browser_hashes=hashes)


def identify(flow: Any, callback_name: str | None, query: dict[str, Any]) -> ExternalIdentity:
    """Return the identity that a callback is about. Raises `ApiError`."""
    provider = provider_named(flow.provider)
    if provider.callback_name != callback_name:
        # Do not send another provider's code to this one (mix-up attack).
        provider.log_failure("the browser returned to another provider's redirect URI")
        raise ApiError("bad_oauth_callback")
    if "error" in query or "code" not in query:
        raise _refusal(provider, query)
    try:
        secrets = latchkey.sealer.open_json(flow.secrets, flow.id)
        return provider.identify(query, code_verifier=secrets["code_verifier"], nonce=secrets["nonce"])
    except CannotOpen:
        raise ApiError("bad_oauth_state") from None
    except ProviderError as error:
        raise ApiError("bad_oauth_callback", str(error)) from None


def _refusal(provider: Provider, query: dict[str, Any]) -> ProviderRefusal:
    """Return the error of a callback without a code, and log it unless the user refused."""
    refusal = ProviderRefusal(query.get("error"))
    if refusal.error != "access_denied":
        refusal.details = said(query.get("error"), query.get("error_description")) or "no code"
        provider.log_failure(refusal.details)
    return refusal


def redirect_with_refusal(redirect_to: str | None, error: ApiError) -> Response:
    known = getattr(error, "error", None) or _ERRORS.get(error.error_code, "access_denied")
    return redirect_with_error(latchkey.redirects.checked(redirect_to), known, error)


def redirect_to_provider(
    provider: Provider, state: str, secrets: dict[str, Any], browser: str, status: int
) -> Response:
    """Redirect a browser, which gets its cookie, to the provider. Raises `ProviderRefusal`."""
    try:
        url = provider.authorization_url(state=state, **secrets)
    except ProviderError:
        raise ProviderRefusal("temporarily_unavailable", "unreachable.bad_oauth_callback") from None
    response, crosses_sites = redirect(url, status), provider.posts_form
    name = COOKIES[crosses_sites]
    cookies.remember(response, name, browser, max_age=promises.FLOW_LIFETIME, crosses_sites=crosses_sites)
    return response
