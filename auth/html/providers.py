"""Sending a browser to a provider. A cookie binds each flow to its browser, against login CSRF."""

from typing import Any, Literal

from flask import Response

from auth.core import constants
from auth.core.net.redirects import with_query
from auth.core.providers import ProviderError
from auth.core.providers.client import Provider
from auth.core.tokens import one_time
from auth.flows.sign_in.oauth import NewFlow, ProviderRefusal, new_secrets, write_flow
from auth.flows.sign_in.waiting import keep_address
from auth.html.redirects import COMPANY, Destination, FlowEnd, destination_of, redirect_with_error
from auth.web import cookies
from auth.web.application import redirect
from auth.web.asked import current_asked
from auth.web.context import latchkey
from auth.web.errors import ApiError

# The names of errors in RFC 6749, section 4.1.2.1. All others are `access_denied`.
_ERRORS = {
    "bad_oauth_state": "invalid_request",
    "bad_oauth_callback": "server_error",
    "oauth_provider_not_supported": "server_error",
    "hook_failed": "temporarily_unavailable",
}
# The cookie by whether the provider posts a form, with which browsers do not send a Lax cookie.
COOKIES = {False: "latchkey_flow", True: "latchkey_flow_post"}


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
        parameters = secrets | {"asks_again": asks_again}
        response = redirect_to_provider(provider, state, parameters, browser, status)
    except ProviderRefusal as refusal:
        url = latchkey.redirects.checked(redirect_to)
        ending = FlowEnd(url, has_challenge=code_challenge is not None)
        response = redirect_with_refusal(ending, refusal)
        response.status_code = status
        return response
    write_flow(
        current_asked(),
        latchkey.db,
        provider,
        state,
        secrets,
        redirect_to=redirect_to,
        code_challenge=code_challenge,
        browser_hash=one_time.hash_token(browser),
    )
    return response


def redirect_caller(
    provider: Provider, redirect_to: str, *, asks_again: bool = False
) -> tuple[NewFlow, Response]:
    """Return a flow that signs in the caller alone, for an act to write, and the redirect to the provider.

    Call it before the act: it fetches the provider's document. Raises `ProviderRefusal`.
    """
    browser = cookies.browser_secret(COOKIES[provider.posts_form])
    flow = NewFlow(
        provider, one_time.new_token(), new_secrets(None), redirect_to, one_time.hash_token(browser)
    )
    parameters = flow.secrets | {"asks_again": asks_again}
    return flow, redirect_to_provider(provider, flow.state, parameters, browser, 303)


def redirect_to_own_way(ending: FlowEnd, email: str | None) -> Response:
    """Redirect to /sign-in a user whom the provider of the email's domain may not sign in yet.

    After a sign-in as before, the page of the company moves the user to the provider.
    """
    to = destination_of(ending.url)
    if not (to.next or "").startswith(COMPANY):  # a second failure returns there, too
        to = Destination(next=to.path(COMPANY))
    query = {"way": "password"}
    if email:
        browser = cookies.bind_to_browser()
        query["typed"] = keep_address(current_asked(), email, **browser, has_asked=False)
    url = with_query(to.own_url("sign-in"), query)
    return redirect_with_error(FlowEnd(url), "access_denied", ApiError("user_sso_conflict"))


def redirect_with_refusal(ending: FlowEnd, error: ApiError) -> Response:
    name = getattr(error, "error", None) or _ERRORS.get(error.error_code, "access_denied")
    return redirect_with_error(ending, name, error)


def redirect_to_provider(
    provider: Provider, state: str, parameters: dict[str, Any], browser: str, status: int
) -> Response:
    """Redirect a browser, which gets its cookie, to the provider. Raises `ProviderRefusal`."""
    try:
        url = provider.authorization_url(state=state, **parameters)
    except ProviderError:
        raise ProviderRefusal("temporarily_unavailable", "unreachable.bad_oauth_callback") from None
    response, name = redirect(url, status), COOKIES[provider.posts_form]
    samesite: Literal["Lax", "None"] = "None" if provider.posts_form else "Lax"
    cookies.set_cookie(response, name, browser, max_age=constants.FLOW_LIFETIME, samesite=samesite)
    return response
