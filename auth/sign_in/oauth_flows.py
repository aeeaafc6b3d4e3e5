"""Sign-ins with providers in progress. A cookie binds each to its browser, against login CSRF."""

from typing import Any

import structlog
from flask import Response

from auth.context import latchkey
from auth.messages.outgoing import new_id
from auth.providers import ProviderError
from auth.providers.client import ExternalIdentity, Provider
from auth.sign_in.arrivals import redirect_with_error
from auth.tokens import one_time
from auth.tokens.keys import CannotOpen
from auth.web import cookies, json_bodies
from auth.web.errors import ApiError
from sql import Database, Transaction

log = structlog.get_logger()

_LIFETIME = 600  # seconds
# RFC 6749, section 4.1.2.1. The others are `access_denied`.
_ERRORS = {
    "bad_oauth_state": "invalid_request",
    "bad_oauth_callback": "server_error",
    "oauth_provider_not_supported": "server_error",
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
    flow_id = new_id()
    others = {"redirect_to": None, "code_challenge": None, "user_id": None, "session_id": None}
    db.run(
        "insert_oauth_flow",
        id=flow_id,
        state_hash=one_time.hash_token(state),
        browser_hash=browser and one_time.hash_token(browser),
        provider=provider.name,
        secrets=latchkey.sealer.seal_json(secrets, flow_id),
        lifetime=_LIFETIME,
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
        if flow := latchkey.db.one("spend_oauth_flow", state_hash=state_hash, browser_hash=browser_hash):
            return flow
    return None


def identify(flow: Any, callback_name: str | None, query: dict[str, Any]) -> ExternalIdentity:
    """Return the identity that a callback is about. Raises `ApiError`."""
    provider = latchkey.providers.get(flow.provider)
    if provider is None:
        raise ApiError("oauth_provider_not_supported")
    if provider.callback_name != callback_name:
        # Do not send another provider's code to this one (mix-up attack).
        reason = "the browser came to the redirect URI of another provider"
        log.warning("provider_failed", provider=provider.name, reason=reason)
        raise ApiError("bad_oauth_callback")
    if "error" in query or "code" not in query:
        raise ProviderRefusal(query.get("error"))
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
    except ProviderError:
        raise ApiError("bad_oauth_callback") from None


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


def authorization_url(provider: Provider, state: str, secrets: dict[str, Any]) -> str:
    try:
        return provider.authorization_url(state=state, **secrets)
    except ProviderError:
        raise ProviderRefusal("temporarily_unavailable", "unreachable.bad_oauth_callback") from None


def to_provider(provider: Provider, url: str, browser: str, status: int) -> Response:
    response = Response(status=status, headers={"Location": url})
    name = _cookie(provider)
    crosses_sites = name == _CROSS_SITE
    cookies.remember(response, name, browser, max_age=_LIFETIME, crosses_sites=crosses_sites)
    return response


def _cookie(provider: Provider) -> str:
    return _CROSS_SITE if provider.posts_form else _LAX
