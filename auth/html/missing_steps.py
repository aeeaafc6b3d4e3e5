"""Redirects to the page for a missing session, second step or proof, and links to what a membership lacks."""

import re
from collections.abc import Collection, Mapping
from typing import Any, NamedTuple
from urllib.parse import urlencode

from flask import Response, request

from auth.core.net.redirects import with_query
from auth.core.text.names import PREFIX
from auth.flows import organizations
from auth.html import forms
from auth.html.page import redirect_to_own
from auth.html.redirects import COMPANY, own_page
from auth.rules import identities
from auth.web import cookies
from auth.web.context import latchkey
from auth.web.errors import ApiError
from sql import queries

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


_COMPANY_LINK = ("organizations", "give_sign_in")


class MembershipStep(NamedTuple):
    """What a membership lacks in a session: the name of its text in the table `organizations`, the table and
    name of a link's text, and the path of its page, None if there is none for the user.
    """

    asks: str
    give: tuple[str, str]
    path: str | None


def step_of_membership(
    membership: Mapping[str, Any], person: "queries.SelectPerson | None", next_page: str
) -> MembershipStep | None:
    """Return what makes a membership count, as the user's session sees it; then `next_page` comes."""
    missing = organizations.missing_step(membership, (person and person.aal) or "")
    if missing == "organization_sign_in_needed":
        if person is None or not _moves_to_one(person, membership["requires"]["providers"]):
            return MembershipStep("asks_sign_in_of_others", _COMPANY_LINK, None)
        return MembershipStep("asks_sign_in", _COMPANY_LINK, with_query(COMPANY, {"next": next_page}))
    if missing == "insufficient_aal":
        link, page = _second_step()
        return MembershipStep("asks", link, with_query(page, {"next": next_page}) if page else None)
    return None


def _moves_to_one(person: "queries.SelectPerson", providers: Collection[str]) -> bool:
    """Whether the page of a company leads the user to one of these providers."""
    row = queries.select_provider_of_user(latchkey.db, user_id=person.id) if providers else None
    is_one = row is not None and f"{PREFIX}{row.id}" in providers
    return is_one and identities.refusal_of_administrator(person) is None


def _second_step() -> tuple[tuple[str, str], str | None]:
    """Return the text of a link to what gives a second step, and its page, None if the settings have none."""
    if latchkey.settings.mfa_enabled:
        return ("organizations", "give"), "second-step"
    passkeys = "account/passkeys/new" if latchkey.settings.passkeys_enabled else None
    return ("account", "passkey_heading"), passkeys
