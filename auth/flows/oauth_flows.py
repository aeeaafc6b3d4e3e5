"""A sign-in with a provider that is under way: what it began with, and the browser that it belongs to.

The classic hole of OAuth clients is a callback that anybody's browser may visit. Here each flow is bound to a cookie.
"""

from typing import Any

import structlog
from flask import Response, request

from auth.context import latchkey
from auth.flows.token_response import redirect_with_error
from auth.net import bounded_http
from auth.providers.client import Provider, ProviderError
from auth.tokens import one_time
from auth.tokens.sealed import open_json
from auth.web.errors import ApiError

log = structlog.get_logger()

# Seconds from leaving for the provider to coming back.
FLOW_LIFETIME = 600

# What is no refusal of the user (RFC 6749, section 4.1.2.1: `access_denied`).
_ERRORS = {"bad_oauth_state": "invalid_request", "bad_oauth_callback": "server_error", "oauth_provider_not_supported": "server_error"}
# One cookie for providers that redirect, one for those that post a form: a form from another site brings no Lax cookie.
_LAX, _CROSS_SITE = "flow", "flow_post"


def provider_named(name: str) -> Provider:
    """Return a provider that is set up. Raises `ApiError` 400."""
    provider = latchkey.providers.get(name)
    if provider is None:
        details = "provider: must be one of external_providers in /settings"
        raise ApiError("oauth_provider_not_supported", details)
    return provider


def new_secrets() -> dict[str, Any]:
    """Return what only we and the provider know of a flow: the nonce of its id_token, and the verifier of its code."""
    return {"nonce": one_time.new_token(), "code_verifier": one_time.new_token()}


def authorization_url(provider: Provider, state: str, secrets: dict[str, Any], scopes: str | None) -> str:
    """Return where the provider asks its user. Raises `ProviderError` when that can't be found out now."""
    try:
        with bounded_http.one_deadline():
            return provider.authorization_url(state=state, nonce=secrets["nonce"], code_verifier=secrets["code_verifier"], scopes=scopes)
    except ProviderError as error:
        log.warning("provider_failed", provider=provider.name, reason=str(error))
        raise


def flow_secrets(flow: Any) -> dict[str, Any]:
    """Return what `new_secrets` made for a flow. Raises `CannotOpen`: its key may have been taken out of `AUTH_SECRET_KEY` meanwhile."""
    return open_json(latchkey.sealer, flow.secrets, flow.id)


def refused(target: str, error_code: str) -> Response:
    """Send a browser on with why nobody was signed in."""
    return redirect_with_error(target, _ERRORS.get(error_code, "access_denied"), ApiError(error_code))


def turned_back(redirect_to: str | None) -> Response:
    """Send a browser back that can't be sent to the provider now."""
    target = latchkey.redirects.checked(redirect_to)
    return redirect_with_error(target, "temporarily_unavailable", ApiError("unreachable.bad_oauth_callback"))


def browser_secret(provider: Provider | None = None) -> str:
    """Return what this browser is known by: as before, so that sign-ins in two tabs don't disturb each other."""
    sent = _sent(_cookie(provider))
    return sent if one_time.hash_token(sent) else one_time.new_token()


def sent_browser_hashes() -> list[bytes]:
    """Return the hashes of what the browser that has come back is known by."""
    return [known for name in (_LAX, _CROSS_SITE) if (known := one_time.hash_token(_sent(name)))]


def has_own_cookie() -> bool:
    """Whether a form was sent from a page of ours: one from another site brings no Lax cookie."""
    return one_time.hash_token(_sent(_LAX)) is not None


def to_provider(provider: Provider, url: str, browser: str, status: int) -> Response:
    """Send the browser to the provider, with what it is known by when it comes back."""
    response = Response(status=status, headers={"Location": url})
    remember_browser(response, browser, provider)
    return response


def remember_browser(response: Response, browser: str, provider: Provider | None = None) -> None:
    """Give the browser what it is known by."""
    name = _cookie(provider)
    response.set_cookie(
        _full_name(name),
        browser,
        max_age=FLOW_LIFETIME,
        httponly=True,
        path="/",
        secure=name == _CROSS_SITE or latchkey.settings.base_url.startswith("https:"),
        samesite="None" if name == _CROSS_SITE else "Lax",
    )


def _cookie(provider: Provider | None) -> str:
    return _CROSS_SITE if provider and provider.posts_form else _LAX


def _sent(name: str) -> str:
    return request.cookies.get(_full_name(name), "")


def _full_name(name: str) -> str:
    # The prefix keeps other hosts of the domain from planting one (RFC 6265bis); it needs TLS.
    return f"__Host-latchkey_{name}" if latchkey.settings.base_url.startswith("https:") else f"latchkey_{name}"
