"""Signing in with providers: the flows in progress, and the identities that they return.

A cookie binds each flow to its browser, against login CSRF.
"""

import uuid
from typing import Any

from flask import Response

from auth.context import latchkey
from auth.providers import ProviderError
from auth.providers.client import ExternalIdentity, Provider, said
from auth.sign_in.arrivals import redirect_with_error
from auth.tokens import one_time
from auth.tokens.keys import CannotOpen
from auth.web import cookies, json_bodies
from auth.web.errors import ApiError
from sql import Database, Transaction, queries

LIFETIME = 600  # seconds
# RFC 6749, section 4.1.2.1. The others are `access_denied`.
_ERRORS = {
    "bad_oauth_state": "invalid_request",
    "bad_oauth_callback": "server_error",
    "oauth_provider_not_supported": "server_error",
    "hook_failed": "temporarily_unavailable",
}
_PROVIDER_ERRORS = {"access_denied", "temporarily_unavailable", "server_error"}
# Browsers do not send a Lax cookie with a form that a provider posts.
_LAX, _CROSS_SITE = "latchkey_flow", "latchkey_flow_post"


class ProviderRefusal(ApiError):
    def __init__(self, error: str | None, key: str = "bad_oauth_callback") -> None:
        super().__init__(key)
        self.error = error if error in _PROVIDER_ERRORS else "server_error"


def provider_named(name: str) -> Provider:
    if name not in latchkey.providers:
        details = "provider: must be one of external_providers in /settings"
        raise ApiError("oauth_provider_not_supported", details)
    return latchkey.providers[name]


def new_secrets(scopes: str | None) -> dict[str, Any]:
    return {"nonce": one_time.new_token(), "code_verifier": one_time.new_token(), "scopes": scopes}


def write_flow(
    db: Database | Transaction,
    provider: Provider,
    state: str,
    secrets: dict[str, Any],
    browser: str | None = None,
    **columns: str | None,
) -> None:
    """Write a flow of a browser; or of a `user_id` and `session_id`, to link an identity."""
    flow_id = str(uuid.uuid4())
    others = {"redirect_to": None, "code_challenge": None, "user_id": None, "session_id": None}
    queries.insert_oauth_flow(
        db,
        id=flow_id,
        state_hash=one_time.hash_token(state),
        browser_hash=one_time.hash_token(browser) if browser else None,
        provider=provider.name,
        secrets=latchkey.sealer.seal_json(secrets, flow_id),
        lifetime=LIFETIME,
        **others | columns,
    )


def flow_secrets(flow: Any) -> dict[str, Any] | None:
    """Return the secrets of a flow, or None if their key was removed from `AUTH_SECRET_KEY`."""
    try:
        return latchkey.sealer.open_json(flow.secrets, flow.id)
    except CannotOpen:
        return None


def spend_flow(state: str) -> Any:
    """End the flow with this state and the browser's cookie, and return its row or None."""
    state_hash = one_time.hash_token(state)
    browser_hashes = [one_time.hash_token(cookies.sent(name)) for name in (_LAX, _CROSS_SITE)]
    for browser_hash in filter(None, browser_hashes if state_hash else ()):
        if flow := queries.spend_oauth_flow(latchkey.db, state_hash=state_hash, browser_hash=browser_hash):
            return flow
    return None


def identify(flow: Any, callback_name: str | None, query: dict[str, Any]) -> ExternalIdentity:
    """Return the identity that a callback is about. Raises `ApiError`."""
    provider = latchkey.providers.get(flow.provider)
    if provider is None:
        raise ApiError("oauth_provider_not_supported")
    if provider.callback_name != callback_name:
        # Do not send another provider's code to this one (mix-up attack).
        provider.log_failure("the browser returned to another provider's redirect URI")
        raise ApiError("bad_oauth_callback")
    if "error" in query or "code" not in query:
        refusal = ProviderRefusal(query.get("error"))
        if refusal.error != "access_denied":
            refusal.details = said(query.get("error"), query.get("error_description")) or "no code"
            provider.log_failure(refusal.details)
        raise refusal
    secrets = flow_secrets(flow)
    if secrets is None:
        raise ApiError("bad_oauth_state")
    try:
        return provider.identify(
            code=query["code"],
            code_verifier=secrets["code_verifier"],
            nonce=secrets["nonce"],
            issuer=query.get("iss"),
            user=_apple_user(query),
        )
    except ProviderError as error:
        raise ApiError("bad_oauth_callback", str(error)) from None


def _apple_user(query: dict[str, Any]) -> dict[str, Any] | None:
    # Apple sends the user's name next to the code, unsigned, and only the first time.
    try:
        return json_bodies.decode(query["user"].encode()) if "user" in query else None
    except (json_bodies.InvalidJson, UnicodeError):
        return None


def refused(redirect_to: str | None, error: ApiError) -> Response:
    known = getattr(error, "error", None) or _ERRORS.get(error.error_code, "access_denied")
    return redirect_with_error(latchkey.redirects.checked(redirect_to), known, error)


def browser_secret(provider: Provider) -> str:
    """Return the browser's cookie, or a new value. Sign-ins in two tabs share it."""
    return cookies.browser_secret(_cookie(provider))


def authorization_url(
    provider: Provider, state: str, secrets: dict[str, Any], *, asks_again: bool = False
) -> str:
    try:
        return provider.authorization_url(state=state, asks_again=asks_again, **secrets)
    except ProviderError:
        raise ProviderRefusal("temporarily_unavailable", "unreachable.bad_oauth_callback") from None


def to_provider(provider: Provider, url: str, browser: str, status: int) -> Response:
    response = Response(status=status, headers={"Location": url})
    crosses_sites = provider.posts_form
    cookies.remember(response, _cookie(provider), browser, max_age=LIFETIME, crosses_sites=crosses_sites)
    return response


def _cookie(provider: Provider) -> str:
    return _CROSS_SITE if provider.posts_form else _LAX
