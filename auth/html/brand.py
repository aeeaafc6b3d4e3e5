"""The operator's colours, logo and icon, which all pages load, and the footer's choices."""

import re
from pathlib import PurePath

from flask import Blueprint, Response
from markupsafe import Markup

from auth.core.settings.brand import LOGO_TYPES, logo_file, palette
from auth.core.settings.logo_size import is_wide
from auth.core.settings.providers import PROVIDER_PREFIX
from auth.html.forms import own_form
from auth.html.page import LANGUAGE, LANGUAGES, THEME, redirect_to_own
from auth.web import any_origin, cookies, fields, refuses_by_page, schemas
from auth.web.context import latchkey
from auth.web.errors import ApiError
from auth.web.input import read_form
from auth.web.limits import limited

blueprint = Blueprint("brand", __name__)

_CACHE = {"Cache-Control": "public, max-age=300"}
# A logo must not run or load anything, even if it is opened directly.
_LOGO_CSP = "default-src 'none'; style-src 'unsafe-inline'; sandbox"
_ICON = Markup(
    '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 32 32" font-family="system-ui, sans-serif"'
    ' font-size="18" font-weight="600" text-anchor="middle"><rect width="32" height="32" rx="8"'
    ' fill="{accent}"/><text x="16" y="22" fill="{on_accent}">{initial}</text></svg>\n'
)
# In XYZ, y is the luminance by which contrast is measured. A light accent is dimmed, and a dark one mixed
# with white, until a link has 4.5:1 around the cards (#f0f2f5) and under the pointer (#20232a).
_COLORS = """\
:root { --accent: %(accent)s; --on-accent: %(on_accent)s; --link: var(--text); }
@supports (color: color(from red xyz-d65 x y z)) {
  :root {
    --link: light-dark(
      color(from var(--accent) xyz-d65 calc(x * min(1, 0.154 / y)) min(y, 0.154) calc(z * min(1, 0.154 / y))),
      color(from var(--accent) xyz-d65 calc(x + (0.95 - x) * max(0, (0.253 - y) / (1.01 - y))) max(y, 0.253)
        calc(z + (1.09 - z) * max(0, (0.253 - y) / (1.01 - y))))
    );
  }
}
"""
_YEAR = 365 * 86_400
# One of our paths, relative to the root.
_OWN_PATH = re.compile(r"/([a-z-]+(/[a-z0-9-]+)*)?(\?[!-~]*)?")
_Preferences = schemas.Input.of(
    language=fields.Choice(*LANGUAGES),
    theme=fields.Choice("system", "light", "dark"),
    back=fields.Text(required=True),
)


@blueprint.get("/brand.css")
@any_origin
def brand_css() -> Response:
    """Return the colours that page.css uses."""
    css = _COLORS % palette(latchkey.settings.brand_color)
    return Response(css, mimetype="text/css", headers=_CACHE)


@blueprint.get("/brand/logo", defaults={"name": None})
@blueprint.get("/brand/logo/<name>")
@any_origin
def brand_logo(name: str | None) -> Response:
    """Return the file of `AUTH_BRAND_LOGO`, or the logo of a provider."""
    setting = f"{PROVIDER_PREFIX}{name.upper()}_LOGO" if name else "AUTH_BRAND_LOGO"
    logo = latchkey.settings.logos.get(setting)
    content = logo_file(setting, logo) if logo else None
    if logo is None or content is None:
        raise ApiError("not_found")
    headers = _CACHE | {"Content-Security-Policy": _LOGO_CSP}
    return Response(content, mimetype=LOGO_TYPES[PurePath(logo).suffix.lower()], headers=headers)


@blueprint.get("/brand/icon")
@any_origin
def brand_icon() -> Response:
    """Return the logo, unless it is too wide for a tab of the browser, or the initial of the brand."""
    settings = latchkey.settings
    if settings.brand_logo and not is_wide(settings.brand_logo):
        return brand_logo(None)
    svg = _ICON.format(**palette(settings.brand_color), initial=settings.brand_name[0].upper())
    return Response(svg, mimetype="image/svg+xml", headers=_CACHE | {"Content-Security-Policy": _LOGO_CSP})


@blueprint.post("/preferences")
@own_form
@limited("set_preferences")
@refuses_by_page
def preferences() -> Response:
    """Remember a language or a theme, and return to the page."""
    form = read_form(_Preferences)
    back = form["back"] if _OWN_PATH.fullmatch(form["back"]) else "/"
    response = redirect_to_own(back[1:])
    for cookie, name in ((LANGUAGE, "language"), (THEME, "theme")):
        if name in form:
            cookies.set_cookie(response, cookie, form[name], max_age=_YEAR)
    return response
