"""Users' decisions about authorization requests, on our page or on the application's."""

from contextlib import suppress
from typing import Any, Literal, NamedTuple

import psycopg2

from auth.core import promises
from auth.core.net.redirects import origin
from auth.core.text import names
from auth.core.tokens import client_ids, one_time
from auth.extensions import Waiting
from auth.extensions.openid import uris
from auth.extensions.openid.authorization_requests import COOKIE, answer
from auth.flows.account import grants
from auth.flows.sign_in.reauthentication import admit_caller
from auth.web import Level, cookies, g
from auth.web.asked import current_asked
from auth.web.context import latchkey
from auth.web.errors import ApiError
from sql import Database, Transaction, acts, queries

# Missing steps of an approval, as errors of OpenID Connect Core 1.0, section 3.1.2.6. Our page asks for the
# last two.
Obstacle = Literal["access_denied", "login_required", "account_selection_required", "consent_required"]
_ASKED = ("account_selection_required", "consent_required")
# The `error` and `error_description` of a denied request, by the missing step.
_DENIALS: dict[Obstacle | None, tuple[str, str]] = {
    "access_denied": ("access_denied", "User may not use this application"),
    "login_required": ("login_required", "User did not sign in again"),
}


class Asked(NamedTuple):
    """A request, a row of `lock_oauth_request`, and its client's row."""

    request: "queries.LockOauthRequest"
    client: "queries.LockClientOfRequest"


def find(
    db: Database | Transaction,
    authorization_id: str,
    *,
    browser: str | None = None,
    is_by_token: bool = False,
) -> Asked:
    """Return a request of this browser, or for the holder of an access token."""
    id_hash = one_time.hash_token(authorization_id)
    client = queries.lock_client_of_request(db, id_hash=id_hash)
    request = client and queries.lock_oauth_request(
        db,
        id_hash=id_hash,
        browser_hash=_hash_of_browser(browser),
        is_by_token=is_by_token,
        user_id=g.user_id,
        session_id=g.user_id and g.caller.session_id,
    )
    if client is None or request is None or not (request.is_pending or is_by_token):
        raise ApiError("oauth_authorization_not_found")
    _check_scheme(client, request.redirect_uri)
    return Asked(request, client)


def behind(next_page: str) -> Waiting | None:
    """Return the application that a page returns to, or None. Also None without the database."""
    authorization_id = next_page.partition("oauth/consent?authorization_id=")[2]
    if authorization_id:
        with suppress(ApiError, psycopg2.Error):
            asked = find(latchkey.db, authorization_id)
            row, form = asked.request, {"authorization_id": authorization_id, "action": "deny"}
            facts = row.redirect_uri, row.login_hint, row.is_fresh
            return Waiting(shown_name(asked), *facts, declining="oauth/consent", fields=form)
    return None


def shown_name(asked: Asked) -> str:
    # The name in a document is not verified.
    name = client_ids.host_of(asked.client.metadata_url or "") or names.in_one_line(asked.client.name)
    return name or uris.host(asked.request.redirect_uri)


def website_of(authorization_id: str) -> tuple[str, str | None] | None:
    """Return the name and the website of a request's application, even if the request is over."""
    client = queries.lock_client_of_request(latchkey.db, id_hash=one_time.hash_token(authorization_id))
    if client is None:
        return None
    urls = [client.uri, *(origin(uri) for uri in client.redirect_uris if not uris.is_native(uri))]
    # A stranger can register a dynamic client. Our page must not link to a website that a stranger chose.
    url = None if client.is_dynamic else next(filter(None, urls), None)
    return names.in_one_line(client.name) or uris.host(url or ""), url


def obstacle(asked: Asked) -> Obstacle | None:
    """Return the obstacle to approving the caller's request without asking."""
    request, client = asked
    if not request.may_use:
        return "access_denied"
    if not request.is_fresh:
        return "login_required"
    if request.user_id not in (None, g.user_id):
        return "account_selection_required"
    # Any program on the device may pretend to be such a client (RFC 8252, section 8.6).
    native = uris.is_native(request.redirect_uri)
    is_unproved = (client.is_dynamic and not client.metadata_url) or (native and client.secret_hash is None)
    is_allowed = request.is_granted or (client.skip_consent and not native)
    asks = {"consent", "select_account"} & {*request.prompts}
    return "consent_required" if asks or is_unproved or not is_allowed else None


def may_approve(missing: Obstacle | None, *, has_agreed: bool) -> bool:
    return missing is None or (has_agreed and missing in _ASKED)


def approve(tx: Transaction, user: Any, asked: Asked) -> str:
    """Approve a request for the caller, whose row `user` is locked, and return the secret for the code."""
    if not asked.request.is_granted:
        grants.add(current_asked(), tx, user, asked.client, asked.request)
    approval = one_time.new_token()
    queries.approve_oauth_request(
        tx,
        id=asked.request.id,
        user_id=user.id,
        session_id=g.caller.session_id,
        approval_hash=one_time.hash_token(approval),
    )
    return approval


def approve_in_browser(
    authorization_id: str, *, has_agreed: bool = False, browser: str | None = None
) -> tuple[str | None, Obstacle | None]:
    """Approve a request, and return the URL with the code, or the missing step."""
    with acts.on(latchkey.db, g.caller.user_id) as tx:
        user = admit_caller(current_asked(), tx, level=Level.AAL2)
        asked = find(tx, authorization_id, browser=browser)
        missing = obstacle(asked)
        if not may_approve(missing, has_agreed=has_agreed):
            return None, missing
        return give_code(tx, authorization_id, approve(tx, user, asked), browser), None


def give_code(
    db: Database | Transaction, authorization_id: str, approval: str, browser: str | None = None
) -> str:
    """Create the code of an approved request, once, and return the URL for the browser."""
    code = one_time.new_token()
    row = queries.give_oauth_code(
        db,
        id_hash=one_time.hash_token(authorization_id),
        browser_hash=_hash_of_browser(browser),
        approval_hash=one_time.hash_token(approval),
        code_hash=one_time.hash_token(code),
        code_lifetime=promises.AUTHORIZATION_CODE_LIFETIME,
        lifetime=promises.FLOW_LIFETIME,
    )
    if row is None:
        raise ApiError("oauth_authorization_not_found")
    _check_scheme(row, row.redirect_uri)
    return answer(row.redirect_uri, row.state, code=code)


def deny(db: Database | Transaction, asked: Asked) -> str:
    """End a request that the user did not or may not approve, and return the URL for the browser."""
    request, missing = asked.request, obstacle(asked) if g.user_id else None
    error, description = _DENIALS.get(missing, ("access_denied", "User denied the request"))
    queries.delete_oauth_request(db, id=request.id)
    return answer(request.redirect_uri, request.state, error=error, error_description=description)


def _check_scheme(client: Any, redirect_uri: str) -> None:
    """Raises `ApiError` if an operator has taken the scheme away since the request."""
    if client.is_dynamic and not uris.is_open_scheme(redirect_uri):
        raise ApiError("oauth_authorization_not_found")


def _hash_of_browser(browser: str | None) -> bytes | None:
    return one_time.hash_token(cookies.sent(COOKIE) if browser is None else browser)
