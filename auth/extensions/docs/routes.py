"""The documentation: the HTTP API, the guides, and a search. The pages need no other host. Only the trial
of requests, on a developer's machine, needs a script.

The first request of a worker for a page imports its renderer, which takes 0.5 s for the API's page.
"""

import functools
import gzip
from pathlib import Path

from flask import Blueprint, Response, render_template, request
from markupsafe import escape

from auth.core.settings.brand import LOGO_TYPES
from auth.html.page import THEME
from auth.web import any_origin, cookies, refuses_by_page
from auth.web.context import latchkey
from auth.web.errors import ApiError

_CSP = (
    "default-src 'none'; style-src 'self'; script-src 'self'; img-src 'self'; connect-src {}; "
    "form-action 'self'; frame-ancestors 'none'; base-uri 'none'"
)
_CACHED = {"Cache-Control": "public, max-age=300"}
_LONGEST_QUERY = 100
_FIRST = "docs/quick-start"
_EXAMPLE_URL = "http://localhost:8000"  # the service, in the documents
_OPENAPI = Path(__file__).parents[3] / "openapi.yaml"

blueprint = Blueprint("docs", __name__)


@blueprint.get("/docs")
def docs() -> Response:
    """Show the first guide, or the results of a search in the documentation."""
    words, base_url = request.args.get("q", "")[:_LONGEST_QUERY].lower().split(), latchkey.settings.base_url
    if words:
        from auth.extensions.docs import search

        values = {"theme": _theme(), "found": search.find(words), "most": search.MOST}
        return _page(_render("search.html", "docs", "Search", base_url=base_url, **values))
    return _zipped(_page(), _guide(_FIRST, _theme(), "", base_url))


@blueprint.get("/docs/<path:name>")
@refuses_by_page
def guide(name: str) -> Response:
    """Show a guide, the contract as a page, or a file that a guide links to."""
    from auth.extensions.docs import guides

    settings = latchkey.settings
    if name == "api":
        return _zipped(_page(), _reference(settings.base_url, settings.is_local, _theme()))
    path = guides.library().get(f"docs/{name}")
    if path is None:
        raise ApiError("not_found")
    if path.suffix == ".md":
        root = "../" * (name.count("/") + 1)
        return _zipped(_page(), _guide(f"docs/{name}", _theme(), root, settings.base_url))
    return Response(
        (guides.ROOT / path).read_bytes(),
        # Examples are served as text, so that browsers do not run them.
        mimetype=LOGO_TYPES.get(path.suffix, "text/plain"),
        headers=_CACHED | {"Content-Security-Policy": "default-src 'none'; sandbox; frame-ancestors 'none'"},
    )


@blueprint.get("/openapi.yaml")
@any_origin
def openapi() -> Response:
    """Return the contract of this API."""
    return _zipped(Response(mimetype="application/yaml"), _contract())


@functools.cache
def _reference(base_url: str, is_local: bool, theme: str | None) -> bytes:
    from auth.extensions.docs.reference import PAGE, Reference

    values = {"theme": theme, "reference": Reference(), "is_local": is_local}
    return gzip.compress(_render("api.html", PAGE, "HTTP API", base_url=base_url, **values).encode())


@functools.cache
def _guide(name: str, theme: str | None, root: str, base_url: str) -> bytes:
    """Return a guide. `root` is the relative URL of the service's root."""
    from auth.extensions.docs import guides

    first, *others = guides.sections(name)
    contents = [section for section in others if section.level == 2]
    values = {"theme": theme, "guide": guides.html(name, root), "root": root, "contents": contents}
    values |= {"anchor": first.anchor}
    return gzip.compress(_render("guide.html", name, first.heading, base_url=base_url, **values).encode())


def _render(template: str, name: str, title: str, *, base_url: str, **values: object) -> str:
    """Return a page, with the URL of this service in place of that of the examples."""
    from auth.extensions.docs import guides

    common = {"name": name, "title": title, "language": "en", "groups": guides.groups()}
    values = common | {"root": "../" * name.count("/"), "base_url": base_url} | values
    page = render_template(f"docs/{template}", **values)
    return page.replace(_EXAMPLE_URL, escape(base_url))


def _theme() -> str | None:
    # The documents are cached by theme. A cookie with another value must not grow the cache.
    theme = cookies.read(THEME)
    return theme if theme in ("light", "dark") else None


def _page(html: str = "") -> Response:
    response = Response(html)
    response.vary.add("Cookie")
    # Requests can be tried only on a developer's machine.
    connects = "'self'" if latchkey.settings.is_local else "'none'"
    response.headers["Content-Security-Policy"] = _CSP.format(connects)
    response.headers["Cross-Origin-Opener-Policy"] = "same-origin"
    return response


def _zipped(response: Response, content: bytes) -> Response:
    response.headers.update(_CACHED)
    response.vary.add("Accept-Encoding")
    if request.accept_encodings["gzip"] > 0:
        response.content_encoding = "gzip"
    else:
        content = gzip.decompress(content)
    response.set_data(content)
    return response


@functools.cache
def _contract() -> bytes:
    return gzip.compress(_OPENAPI.read_bytes())
