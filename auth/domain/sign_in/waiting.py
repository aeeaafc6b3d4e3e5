"""Links and codes that a browser asked for on our pages, and links that are opened in others.

A cookie binds both to the browser. A code works there alone (ASVS 6.6.2). No browser gains a session because
its link was opened elsewhere: a stranger could ask for a link, wait until its owner opens it, and be in.
"""

from typing import Any

from flask import Response, after_this_request

from auth.core import promises
from auth.core.net.redirects import is_web
from auth.core.text.user_agents import browser_and_system
from auth.core.tokens import one_time
from auth.domain.account import admission
from auth.domain.sessions.issuing import Issue
from auth.domain.sessions.token_response import open_session
from auth.web import audit, cookies, g
from auth.web.context import latchkey
from sql import queries

_COOKIE = "latchkey_waiting"


def asker() -> dict[str, str | None]:
    """Return the columns of a link that say from where it was asked for."""
    return {"ip": g.client["ip"], "user_agent": g.client["user_agent"]}


def bound() -> dict[str, bytes | None]:
    """Bind the link and code of a request to this browser, and return the member of the request's body."""
    value = cookies.browser_secret(_COOKIE)

    @after_this_request
    def remember(response: Response) -> Response:
        cookies.remember(response, _COOKIE, value, max_age=promises.LINK_LIFETIME)
        return response

    return {"browser_hash": one_time.hash_token(value)}


def browser() -> dict[str, bytes | None]:
    """Return the same member for a code that is typed in."""
    return {"browser_hash": _browser_hash()}


def is_elsewhere(link: Any, *, is_same: bool = False) -> bool:
    """Whether a link was asked for in another browser.

    A link of the API has no cookie. With a code challenge it is useless in another browser, so the browsers
    are compared, unless the user says that they are the same: phones and desktops differ, and two browsers
    of one kind count as the same. So do all where the link leads to an application's own scheme: a WebView
    asks, the system's browser opens the link, and the application on this device redeems the code. Without
    pages there is nowhere else to go on.
    """
    if link.browser_hash and link.purpose not in one_time.CHANGES:
        return bytes(link.browser_hash) != _browser_hash()
    is_bound = link.code_challenge and link.purpose in ("magiclink", "recovery", "signup")
    opens_application = not is_web(link.redirect_to or "https:")
    if is_same or opens_application or not is_bound or not latchkey.settings.pages:
        return False
    asked, here = browser_and_system(link.user_agent), browser_and_system(g.client["user_agent"])
    # Applications on servers ask for their users.
    return None not in (*asked, *here) and asked != here


def used_link(address: str, purpose: str) -> "queries.SelectUsedLink | None":
    """Return the `user_id` of a link that this browser asked for, once it is used anywhere, or None."""
    asked = {"target": address, "purpose": purpose}
    return queries.select_used_link(latchkey.db, browser_hash=_browser_hash(), **asked)


def continue_sign_up(address: str) -> "queries.OpenSession | None":
    """Open a session for a sign-up of this browser that was confirmed elsewhere. Raises `ApiError`.

    Returns its row, or None: the user's password must be the one that this sign-up has set, so that the
    browser gains nothing. The session proves nothing, because nobody has shown to know the password now.
    """
    admission.check_channel(address, None)
    with latchkey.db.transaction() as tx:
        user = queries.lock_confirmed_sign_up(tx, browser_hash=_browser_hash(), target=address)
        if user is None or not queries.use_confirmed_sign_up(tx, token_id=user.token_id):
            return None
        row = open_session(tx, user.id, "sign_up", Issue())
        details = {"method": "sign_up", "session_id": row.session_id}
        audit.record(tx, user.id, user.email, ["signed_in"], ["auth.login"], **details)
    return row


def _browser_hash() -> bytes | None:
    return one_time.hash_token(cookies.sent(_COOKIE))
