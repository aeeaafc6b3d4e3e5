"""Cookies that bind a flow to its browser, with 256 random bits each, and cookies for preferences."""

from flask import Response, request

from auth.context import latchkey
from auth.tokens import one_time


def browser_secret(name: str) -> str:
    """Return the browser's cookie, or a new value. Tabs share it."""
    value = sent(name)
    return value if one_time.hash_token(value) else one_time.new_token()


def sent(name: str) -> str:
    return request.cookies.get(_full_name(name), "")


def remember(
    response: Response, name: str, value: str, *, max_age: int | None = None, crosses_sites: bool = False
) -> None:
    """Set a cookie, until the browser is closed if there is no `max_age`; with 0, delete it."""
    response.set_cookie(
        _full_name(name),
        value,
        max_age=max_age,
        httponly=True,
        path="/",
        secure=crosses_sites or _has_tls(),
        samesite="None" if crosses_sites else "Lax",
    )


def _full_name(name: str) -> str:
    # With the prefix, other hosts of the domain cannot set the cookie (RFC 6265bis). It needs TLS.
    return f"__Host-{name}" if _has_tls() else name


def _has_tls() -> bool:
    return latchkey.settings.base_url.startswith("https:")
