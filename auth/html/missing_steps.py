"""Redirects to the page for a missing session, second step or proof."""

import re
from urllib.parse import urlencode

from flask import Response, request

from auth.core.net.redirects import with_query
from auth.html import forms
from auth.html.page import redirect_to_own
from auth.html.redirects import COMPANY, own_page
from auth.web import cookies
from auth.web.errors import ApiError

# The pages to which a page's errors redirect. Without a session, it is /sign-in.
_STEPS = {"insufficient_aal": "second-step", "reauthentication_needed": "account/confirm"}
REDIRECTED_ERRORS = {*_STEPS, "session_not_found", "session_expired"}
_PARAMETERS = ("redirect_to", "code_challenge", "then")
# The pages that have a way back in their query as a parameter `next`: of a company, and of an invitation.
_KEEPS_WAY = re.compile(rf"/({COMPANY}|organizations/[^/]+/join)")


def redirect_to_missing(error: ApiError) -> Response:
    """Redirect to the page for an error of `REDIRECTED_ERRORS`, which then returns to the requested page."""
    keeps_way = _KEEPS_WAY.fullmatch(request.path) is not None
    next_page = _with_way_back() if keeps_way else request.path.removeprefix("/").removeprefix("account/")
    # The next page checks these again.
    parameters = {} if keeps_way else _parameters()
    if error.error_code in _STEPS:
        if next_page in ("connect", "remove", "rename"):
            # These pages are about a provider, or an object of the user.
            query = {key: value for key in ("provider", "kind", "id") if (value := request.values.get(key))}
            next_page = with_query(f"account/{next_page}", query)
        return to_step(error.key, {"next": next_page} | parameters)
    # The page shows why a link failed: the query is signed.
    query = {"error_code": request.args["error_code"]} if "error_code" in request.args else {}
    if keeps_way or (request.method in ("GET", "HEAD") and own_page(next_page)):
        query |= {"next": next_page} | parameters
    return to_step(error.key, query)


def _parameters() -> dict[str, str]:
    """Return the destination in the request, which is checked again."""
    return {name: request.values[name] for name in _PARAMETERS if name in request.values}


def _with_way_back() -> str:
    """Return the page with its way back, which not every page of a step passes on."""
    query = {name: request.values[name] for name in (*_PARAMETERS, "next") if name in request.values}
    page = request.path.removeprefix("/")
    return with_query(page, query) if query else page


def to_step(key: str, query: dict[str, str]) -> Response:
    """Redirect to the page for an error of `REDIRECTED_ERRORS`, with the prefix of its key in `by`."""
    by, _, error_code = key.rpartition(".")
    if error_code in _STEPS:
        return redirect_to_own(f"{_STEPS[error_code]}?{urlencode({'by': by} | query if by else query)}")
    # Keep the cookie: browsers do not send it with forms of other sites, and a repeated form may carry one
    # that was renewed meanwhile. A browser without the cookie had no session that could end.
    had_session = request.method not in ("GET", "HEAD") or cookies.read(forms.SESSION)
    query = forms.signed_query(error_code="session_expired") | query if had_session else query
    return redirect_to_own(f"sign-in?{urlencode(query)}" if query else "sign-in")
