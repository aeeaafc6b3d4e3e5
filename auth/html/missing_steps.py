"""Redirects to the page for a missing session, second step or proof, and links to what a membership lacks."""

from collections.abc import Mapping
from typing import Any, NamedTuple
from urllib.parse import urlencode

from flask import Response, request

from auth.core.net.redirects import with_query
from auth.flows import organizations
from auth.html import forms
from auth.html.page import redirect_to_own
from auth.html.redirects import COMPANY, own_page
from auth.rules.levels import Aal
from auth.web import cookies
from auth.web.context import latchkey
from auth.web.errors import ApiError

# The pages to which a page's errors redirect. Without a session, it is /sign-in.
_STEPS = {"insufficient_aal": "second-step", "reauthentication_needed": "account/confirm"}
REDIRECTED_ERRORS = {*_STEPS, "session_not_found", "session_expired"}
_PARAMETERS = ("redirect_to", "code_challenge", "then")


def redirect_to_missing(error: ApiError) -> Response:
    """Redirect to the page for an error of `REDIRECTED_ERRORS`, which then returns to the requested page."""
    is_company = request.path == f"/{COMPANY}"
    next_page = _company_page() if is_company else request.path.removeprefix("/").removeprefix("account/")
    # The next page checks these again.
    parameters = {} if is_company else _parameters()
    if error.error_code in _STEPS:
        if next_page in ("connect", "remove", "rename"):
            # These pages are about a provider, or an object of the user.
            query = {key: value for key in ("provider", "kind", "id") if (value := request.values.get(key))}
            next_page = with_query(f"account/{next_page}", query)
        return to_step(error.key, {"next": next_page} | parameters)
    # The page shows why a link failed: the query is signed.
    query = {"error_code": request.args["error_code"]} if "error_code" in request.args else {}
    if is_company or (request.method in ("GET", "HEAD") and own_page(next_page)):
        query |= {"next": next_page} | parameters
    return to_step(error.key, query)


def _parameters() -> dict[str, str]:
    """Return the destination in the request, which is checked again."""
    return {name: request.values[name] for name in _PARAMETERS if name in request.values}


def _company_page() -> str:
    """Return the page of a company with its way back, which not every page of a step passes on."""
    query = {name: request.values[name] for name in (*_PARAMETERS, "next") if name in request.values}
    return with_query(COMPANY, query) if query else COMPANY


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


class MembershipStep(NamedTuple):
    """What a membership lacks in a session: the names of its texts in the table `organizations`, and the path
    of its page, None if there is none.
    """

    asks: str
    give: str
    path: str | None


def step_of_membership(
    membership: Mapping[str, Any], aal: Aal | None, next_page: str
) -> MembershipStep | None:
    """Return what makes a membership count, as a session of this level sees it; then `next_page` comes."""
    missing = organizations.missing_step(membership, aal or "")
    if missing == "organization_sign_in_needed":
        path = with_query(COMPANY, {"next": next_page}) if membership["requires"]["providers"] else None
        return MembershipStep("asks_sign_in", "give_sign_in", path)
    if missing == "insufficient_aal":
        page = "second-step" if latchkey.settings.mfa_enabled else "account/passkeys/new"
        return MembershipStep("asks", "give", with_query(page, {"next": next_page}))
    return None
