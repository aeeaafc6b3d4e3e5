"""The way back from the page of an organization into the application that linked to it, by `redirect_to`.

A cookie keeps it through the organization's pages, and the sign-ins and steps between them.
"""

from typing import NamedTuple

from flask import Response
from markupsafe import Markup
from werkzeug.http import dump_cookie

from auth.core.net.redirects import origin
from auth.html.destinations import destination
from auth.html.page import address, redirect_to_own
from auth.html.redirects import Destination
from auth.web import cookies
from auth.web.context import latchkey

# The short name of the organization, and the URL. Two tabs of one browser may show two organizations.
_COOKIE = "latchkey_way_back"
# Browsers ignore a cookie of more than 4,096 bytes, and keep the last one. The attributes take 50.
_MOST_BYTES = 4000


class WayBack(NamedTuple):
    url: str
    application: Markup | str


def redirect_and_keep(path: str, slug: str, done: str = "") -> Response:
    """Redirect to a page of an organization, and keep the way back that the request has, if any."""
    response, url = redirect_to_own(path, done), destination().redirect_to
    if url:
        value = f"{slug} {url}"
        has_room = len(dump_cookie(_COOKIE, value, max_size=0)) <= _MOST_BYTES
        cookies.set_cookie(response, _COOKIE, value if has_room else "", max_age=None if has_room else 0)
    return response


def way_back(slug: str) -> WayBack | None:
    """Return the way back from an organization, if the browser came by a link to it."""
    of, _, url = cookies.read(_COOKIE).partition(" ")
    # Another host of the domain may have set the cookie, and the settings may be others by now.
    target = latchkey.redirects.allowed(url) if of == slug else None
    if target is None or latchkey.redirects.is_own_page(target):
        return None
    return WayBack(target, application_at(target))


def application_at(url: str) -> Markup | str:
    """Return the name of the application at an allowed URL: the brand, or the host of another site."""
    is_site = origin(url) == origin(latchkey.settings.site_url)
    return latchkey.settings.brand_name if is_site else address(Destination(url).host)
