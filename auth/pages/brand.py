"""The operator's colours and logo, and the reader's language and theme."""

import re
from pathlib import PurePath

from flask import Blueprint, Response

from auth.context import latchkey
from auth.pages.page import LANGUAGE, LANGUAGES, THEME, THEMES, to_own
from auth.settings.brand import LOGO_TYPES, logo_file, palette
from auth.web import cookies, fields, refuses_by_page, schemas
from auth.web.errors import ApiError
from auth.web.forms import own_form
from auth.web.input import read_form
from auth.web.limits import limited

blueprint = Blueprint("brand", __name__)

_CACHED = {"Cache-Control": "public, max-age=300"}
# A logo must not run or load anything, even if it is opened on its own.
_LOGO_CSP = "default-src 'none'; style-src 'unsafe-inline'; sandbox"
_YEAR = 365 * 86_400
# A path of ours, relative to the root.
_OWN_PATH = re.compile(r"/([a-z-]+(/[a-z0-9-]+)*)?(\?[!-~]*)?")
_Preferences = schemas.Input.from_dict(
    {
        "language": fields.Choice(*LANGUAGES),
        "theme": fields.Choice("system", *THEMES),
        "back": fields.Text(required=True),
    }
)


@blueprint.get("/brand.css")
def brand_css() -> Response:
    """Return the colours that page.css uses."""
    colors = palette(latchkey.settings.brand_color)
    css = (
        f":root {{ --accent: {colors.accent}; --on-accent: {colors.on_accent}; "
        f"--link: light-dark({colors.on_light}, {colors.on_dark}); }}\n"
    )
    return Response(css, mimetype="text/css", headers=_CACHED)


@blueprint.get("/brand/logo")
def brand_logo() -> Response:
    """Return the file `AUTH_BRAND_LOGO`."""
    logo = latchkey.settings.brand_logo
    content = logo_file(logo)
    if logo is None or content is None:
        raise ApiError("not_found")
    headers = _CACHED | {"Content-Security-Policy": _LOGO_CSP}
    return Response(content, mimetype=LOGO_TYPES[PurePath(logo).suffix.lower()], headers=headers)


@blueprint.post("/preferences")
@own_form
@limited("links")
@refuses_by_page
def preferences() -> Response:
    """Remember a language or a theme, and return to the page."""
    form = read_form(_Preferences())
    back = form["back"] if _OWN_PATH.fullmatch(form["back"]) else "/"
    response = to_own(back[1:])
    for cookie, name in ((LANGUAGE, "language"), (THEME, "theme")):
        if name in form:
            cookies.remember(response, cookie, form[name], max_age=_YEAR)
    return response
