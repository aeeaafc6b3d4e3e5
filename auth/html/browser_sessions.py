"""Sessions of browsers on our pages, each with a cookie of 256 random bits, stored hashed.

The cookie is not a refresh token, and applications get their own sessions.
"""

import json
from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import timedelta

from flask import Response, after_this_request, request

from auth.core.tokens import one_time
from auth.core.tokens.access_tokens import Caller, providers_in
from auth.flows import facts
from auth.flows.sessions.issuing import IssuedSession
from auth.html import forms
from auth.html.forms import SESSION
from auth.rules import levels, tokens
from auth.rules.policy import on_pages
from auth.rules.proofs import is_fresh
from auth.rules.sessions import proved_at
from auth.rules.users import has_factor
from auth.web import Level, View, callers, cookies, g, guard
from auth.web.context import latchkey
from auth.web.errors import ApiError
from sql import queries

# The most seconds for which browsers keep a cookie. The session ends earlier, counted from the last visit.
_LONGEST = 400 * 86_400
_BETWEEN_WRITES = timedelta(minutes=5)


@dataclass(frozen=True)
class BrowserSession:
    """The session of a browser, with its user. `lacks_level` is whether it is below the demanded level."""

    user_id: str
    email: str | None
    phone: str | None
    name: str | None
    is_admin: bool
    has_factor: bool
    has_proof: bool
    lacks_level: bool


def resume(level: Level | None = None) -> BrowserSession | None:
    """Make the user of the browser's session the caller, and return the session, or None.

    Its `lacks_level` refers to `level`, by default the route's. One write in five minutes keeps it alive.
    """
    token_hash = one_time.hash_token(forms.session_cookie())
    if token_hash is None:
        return None
    row = queries.select_browser_session(latchkey.db, token_hash=token_hash)
    if row is None:
        return None
    policy = on_pages(latchkey.policy)
    if tokens.refusal_of_session(row, row, None, row.aal, Level.SESSION, policy):
        return None
    if row.refreshed_at < row.now - _BETWEEN_WRITES:
        queries.keep_session(latchkey.db, session_id=row.session_id)
    g.admit(Caller(row.user_id, row.session_id, None, row.aal, token_hash, providers=providers_in(row.amr)))
    return BrowserSession(
        user_id=row.user_id,
        email=row.email,
        phone=row.phone,
        name=row.name,
        is_admin=row.role == "admin",
        has_factor=has_factor(row),
        has_proof=is_fresh(proved_at(row), policy, row.now),
        lacks_level=levels.lacks_level(row, row, row.aal, level or g.level, policy),
    )


def user_or_network() -> str:
    """Return the key of this browser's limits: its user on this network, or else the network."""
    # HEAD must not keep a session alive.
    is_signed_in = request.method != "HEAD" and resume() is not None
    return guard.caller_on_network() if is_signed_in else g.client["network"]


def begin(session: IssuedSession) -> None:
    """Sign the browser in with a new session."""
    # Always a new value: an attacker may know the one from before the sign-in.
    cookie = one_time.new_token()
    queries.insert_browser_session(
        latchkey.db, token_hash=one_time.hash_token(cookie), session_id=session.session_id
    )
    user_id, providers = json.loads(session.user_object)["id"], providers_in(session.amr)
    g.admit(Caller(user_id, session.session_id, None, session.aal, providers=providers))
    keep(cookie, session.aal, lacks_step=session.lacks_step)


def keep(cookie: str | None, aal: str, *, lacks_step: bool = True) -> None:
    """Set the new cookie of the caller's session, whose level is `aal`, in this request's response.

    Call it as soon as the act that returned the cookie has committed: an error's response sets it too. With
    `lacks_step=False`, the caller knows that the session needs no further step.
    """
    if cookie is None:
        raise RuntimeError("only a browser's session has a cookie")
    browser = cookies.browser_secret(cookies.KNOWN)
    g.session_cookie = cookie
    g.admit(replace(g.caller, aal=aal, cookie_hash=one_time.hash_token(cookie)))

    @after_this_request
    def set_cookies(response: Response) -> Response:
        cookies.set_cookie(response, SESSION, cookie, max_age=_LONGEST)
        cookies.set_cookie(response, cookies.KNOWN, browser, max_age=_LONGEST)
        return response

    # One cookie makes the browser known at the next sign-in. A session that lacks no step is not read again,
    # which would take a twelfth of a sign-in.
    if aal >= "aal2" or not lacks_step or _passes_every_step():
        name = cookies.browser_name(browser)
        queries.know_browser(latchkey.db, session_id=g.caller.session_id, browser=name)


def _passes_every_step() -> bool:
    """Whether the caller's session needs no further step, even if its user still has to add one."""
    person = callers.select(latchkey.db, g.caller)
    session = person and facts.own_session_of(person)
    return bool(person and session and levels.passes_every_step(person, session.aal))


def forget(response: Response) -> Response:
    cookies.set_cookie(response, SESSION, "", max_age=0)
    return response


def signed_in(level: Level) -> Callable[[View], View]:
    """Accept browsers with a session on our pages."""

    def admit() -> None:
        if resume() is None:
            raise ApiError("session_not_found")

    return guard.guarded("signed_in", level, admit)
