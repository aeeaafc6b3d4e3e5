"""Decorators that let callers in. Each view that is not public has one, outermost."""

import contextlib
import functools
import hmac
import re
from collections.abc import Callable
from typing import Any
from urllib.parse import urlsplit

from flask import g, request
from flask.typing import ResponseReturnValue

from auth.context import latchkey
from auth.net import networks
from auth.tokens.access_tokens import Caller, InvalidAccessToken
from auth.web.errors import ApiError

View = Callable[..., ResponseReturnValue]

# RFC 6750, section 2.1, but without "=", which would give a token several spellings.
_BEARER = re.compile(r"Bearer +[A-Za-z0-9\-._~+/]+", re.IGNORECASE)

# Besides X-Forwarded-*, in Werkzeug's spelling.
_FORWARDING_HEADERS = {"Forwarded", "X-Real-Ip", "Via", "Cf-Connecting-Ip", "True-Client-Ip"}

# The states of `caller_state` except `live`, with their keys in `ERRORS`.
_REFUSALS = {
    "bad_jwt": "expired.bad_jwt",
    "session_not_found": "session_not_found",
    "session_expired": "session_expired",
    "user_not_found": "caller.user_not_found",
    "user_banned": "user_banned",
}


def access_token(view: View) -> View:
    """Let in users by their access token. The view passes `caller()` to its statement, and the row to `admit`."""

    @functools.wraps(view)
    def guarded(*args: Any, **kwargs: Any) -> Any:
        g.caller = _token_holder()
        return view(*args, **kwargs)

    return guarded


def admin(view: View) -> View:
    """Let in the service role key, and users who are administrators now."""

    @functools.wraps(view)
    def guarded(*args: Any, **kwargs: Any) -> Any:
        g.is_administrative = True
        if _has_service_role_key():
            g.caller = None
        else:
            _refuse_wrong_key()
            g.caller = _token_holder()
            if not live_caller().is_admin:
                raise ApiError("not_admin")
        return view(*args, **kwargs)

    return guarded


def service_role(view: View) -> View:
    """Let in the service role key only."""

    @functools.wraps(view)
    def guarded(*args: Any, **kwargs: Any) -> Any:
        g.is_administrative = True
        if not _has_service_role_key():
            _refuse_wrong_key()
            # A valid access token gets 403, an invalid one 401.
            g.caller = _token_holder()
            live_caller()
            raise ApiError("insufficient_permissions")
        g.caller = None
        return view(*args, **kwargs)

    return guarded


def developer(view: View) -> View:
    """Let in the service role key, and requests from this machine to a local service. Needs `AUTH_DEV_INBOX`."""
    by_key = service_role(view)

    @functools.wraps(view)
    def guarded(*args: Any, **kwargs: Any) -> Any:
        if not latchkey.settings.dev_inbox:
            raise ApiError("not_found")
        if latchkey.settings.is_local and _is_on_this_machine():
            g.caller = None
            return view(*args, **kwargs)
        return by_key(*args, **kwargs)

    return guarded


def caller() -> dict[str, str | int]:
    """Return the caller as parameters of a statement that selects `caller_state`."""
    known: Caller = g.caller
    return {
        "caller_id": known.user_id,
        "caller_session_id": known.session_id,
        "caller_expires_at": known.expires_at,
    }


def caller_id() -> str:
    """Return the key of limits per user."""
    return g.caller.user_id


def is_service_role() -> bool:
    """Whether `admin` let in the service role key."""
    return g.caller is None


def admit(row: Any) -> Any:
    """Return the row of a statement that selects `caller_state`. Raises `ApiError` unless that is `live`."""
    # No row: the user has been deleted.
    state = "user_not_found" if row is None else row.state
    if state in _REFUSALS:
        raise ApiError(_REFUSALS[state])
    return row


def live_caller() -> Any:
    """Return the caller's row. Raises `ApiError` as `admit` does."""
    return admit(latchkey.db.one("select_caller", **caller()))


def _token_holder() -> Caller:
    authorization = _single_header("Authorization")
    if not authorization:
        raise ApiError("no_authorization", "Authorization: must be Bearer <token>")
    scheme, _, token = authorization.partition(" ")
    if scheme.lower() == "bearer":
        with contextlib.suppress(InvalidAccessToken):
            return latchkey.access_tokens.verify(token.lstrip(" "))
    # Only now, as matching a long token takes 2 % of GET /user.
    if _BEARER.fullmatch(authorization):
        raise ApiError("bad_jwt")
    raise ApiError("malformed.bad_jwt", "Authorization: must be Bearer <token>")


def _single_header(name: str) -> str:
    value = request.headers.get(name, "").strip()
    # Servers join repeated headers with commas, which no credential contains.
    if "," in value:
        raise ApiError("validation_failed", f"{name}: must be given once")
    return value


def _refuse_wrong_key() -> None:
    if _single_header("apikey") and not _single_header("Authorization"):
        raise ApiError("service_role.bad_jwt")


def _has_service_role_key() -> bool:
    # Unlike a token, a configured key may contain any character.
    scheme, _, credential = _single_header("Authorization").partition(" ")
    sent = [_single_header("apikey"), credential.strip() if scheme.lower() == "bearer" else ""]
    # Every pair is compared, so that the time does not tell which one matched. Empty credentials never match.
    keys = latchkey.settings.service_role_key
    matches = [hmac.compare_digest(key.encode(), value.encode()) for key in keys for value in sent if value]
    return any(matches)


def _is_on_this_machine() -> bool:
    """Whether a client on this machine sent the request itself, to a local name.

    A local proxy forwards anybody's requests, and a web page can make the browser send them to a name of its
    own that resolves to this machine (DNS rebinding).
    """
    if any(name.startswith("X-Forwarded-") or name in _FORWARDING_HEADERS for name, _ in request.headers):
        return False
    peer = networks.parse(request.remote_addr or "")
    return (
        peer is not None
        and peer.is_loopback
        and networks.is_loopback(urlsplit(f"//{request.host}").hostname or "")
    )
