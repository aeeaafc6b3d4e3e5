"""Sessions of browsers on our pages, each with a cookie of 256 random bits, stored hashed.

The cookie is not a refresh token, and applications get their own sessions.
"""

import json
from typing import Any

from flask import Response

from auth.core.tokens import one_time
from auth.core.tokens.access_tokens import Caller
from auth.web import Level, callers, cookies, g, guard
from auth.web.context import latchkey
from auth.web.errors import ApiError
from auth.web.forms import SESSION
from sql import queries

# The most seconds for which browsers keep a cookie. The session ends earlier, counted from the last visit.
_LONGEST = 400 * 86_400


def resume(level: Level | None = None) -> "queries.UseBrowserSession | None":
    """Make the user of the browser's session the caller, and return the session's row, or None.

    Its `lacks_level` refers to this level, else to the route's.
    """
    token_hash = one_time.hash_token(cookies.sent(SESSION))
    row = token_hash and queries.use_browser_session(
        latchkey.db, token_hash=token_hash, level=level or g.level
    )
    if row:
        g.admit(Caller(row.user_id, row.session_id, None, row.aal))
    return row or None


def end_reason() -> str | None:
    """Return why the session of the browser's cookie ended, as one of `end_sizes`, or None."""
    token_hash = one_time.hash_token(cookies.sent(SESSION))
    ended = token_hash and queries.select_end_of_browser_session(latchkey.db, token_hash=token_hash)
    return ended.reason if ended else None


def begin(session: Any) -> str:
    """Sign the browser in with a new session, a row of `open_session`, and return its cookie's value."""
    if resume():
        end("local")
    user_id = json.loads(session.user_object)["id"]
    # Always a new value: an attacker may know the one from before the sign-in.
    token = one_time.new_token()
    queries.insert_browser_session(
        latchkey.db, token_hash=one_time.hash_token(token), session_id=session.session_id
    )
    g.admit(Caller(user_id, session.session_id, None, session.aal))
    return token


def renew(response: Response) -> None:
    """Give the caller's browser a new cookie, because its level has changed."""
    token = one_time.new_token()
    queries.renew_browser_session(
        latchkey.db, session_id=g.caller.session_id, token_hash=one_time.hash_token(token)
    )
    remember(response, token)


def end(scope: str) -> None:
    """End the caller's sessions in a scope of POST /logout; `local` means this browser with its
    applications."""
    level = Level.AAL2 if scope == "others" else Level.SESSION
    callers.admit(queries.sign_out(latchkey.db, scope=scope, **guard.caller(level)))


def forget(response: Response) -> None:
    cookies.remember(response, SESSION, "", max_age=0)


def remember(response: Response, token: str) -> None:
    """Set the cookie of the caller's session, and one that makes this browser known at the next sign-in."""
    known = cookies.browser_secret(cookies.KNOWN)
    queries.know_browser(latchkey.db, session_id=g.caller.session_id, browser=cookies.browser_name(known))
    cookies.remember(response, SESSION, token, max_age=_LONGEST)
    cookies.remember(response, cookies.KNOWN, known, max_age=_LONGEST)


@guard.guard_by
def signed_in() -> None:
    """Accept browsers with a session on our pages."""
    if resume() is None:
        raise ApiError("session_not_found")
