"""Cookies that bind a flow to its browser, with 256 random bits each, and cookies for preferences."""

from typing import Literal, TypedDict

from flask import Response, after_this_request, request

from auth.core import constants
from auth.core.tokens import one_time
from auth.web.context import latchkey

# Identifies browsers where a user has signed in before.
KNOWN = "latchkey_known"
# Binds links and codes to the browser that asked for them.
WAITING = "latchkey_waiting"

# Whether this browser's user has answered the offer of a passkey.
OFFERED = "latchkey_offered"


def browser_secret(name: str) -> str:
    """Return the browser's cookie, or a new value. Tabs share it."""
    secret = read(name)
    return secret if one_time.hash_token(secret) else one_time.new_token()


def read(name: str) -> str:
    """Return the browser's cookie, or "" for two with one name: another host may have set either."""
    values = request.cookies.getlist(_prefix() + name)
    return values[0] if len(values) == 1 else ""


def browser_name(secret: str) -> str | None:
    """Return the name in `known_networks` of the browser with this cookie."""
    digest = one_time.hash_token(secret)
    return f"browser {digest.hex()}" if digest else None


class BrowserBinding(TypedDict):
    """The browser to which links and codes are bound, as a member of the request's body."""

    browser_hash: bytes | None


def bind_to_browser() -> BrowserBinding:
    """Bind the link and code of a request to this browser."""
    secret = browser_secret(WAITING)

    @after_this_request
    def keep(response: Response) -> Response:
        set_cookie(response, WAITING, secret, max_age=constants.LINK_LIFETIME)
        return response

    return {"browser_hash": one_time.hash_token(secret)}


def set_cookie(
    response: Response,
    name: str,
    value: str,
    *,
    max_age: int | None = None,
    samesite: Literal["Lax", "None"] = "Lax",
) -> None:
    """Set a cookie, until the browser is closed if there is no `max_age`; with 0, delete it."""
    prefix = _prefix()
    response.set_cookie(
        prefix + name,
        value,
        max_age=max_age,
        httponly=True,
        path="/",
        secure=samesite == "None" or bool(prefix),
        samesite=samesite,
    )


def _prefix() -> str:
    # With the prefix, other hosts of the domain cannot set the cookie (RFC 6265bis). It needs TLS.
    return "__Host-" if latchkey.settings.base_url.startswith("https:") else ""
