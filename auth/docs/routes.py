"""The documentation: the HTTP API, the guides, and a search. The pages need no script and no other host.

The first request of a worker for the API's page renders it, in 0.3 s.
"""

import functools
import gzip
from typing import Any

from flask import Blueprint, Response, render_template, request

from auth.core.settings.brand import LOGO_TYPES
from auth.docs import guides
from auth.docs.reference import OPENAPI, PAGE, Reference
from auth.web import any_origin, cookies, refuses_by_page
from auth.web.context import latchkey
from auth.web.errors import ApiError
from auth.web.html.page import THEME

_CSP = (
    "default-src 'none'; style-src 'self'; script-src 'self'; img-src 'self'; connect-src {}; "
    "form-action 'self'; frame-ancestors 'none'; base-uri 'none'"
)
_CACHED = {"Cache-Control": "public, max-age=300"}
_LONGEST_QUERY = 100
_MOST_FOUND = 30
_SNIPPET = 160

blueprint = Blueprint("docs", __name__)


@blueprint.get("/docs")
def docs() -> Response:
    """Show the contract as a page, or what a search in the documentation finds."""
    if words := request.args.get("q", "")[:_LONGEST_QUERY].lower().split():
        found = [(section, _snippet(section, words[0])) for section in _find(words)[:_MOST_FOUND]]
        return _page(_render("search.html", PAGE, "Search", theme=_theme(), found=found, most=_MOST_FOUND))
    return _zipped(_page(), _reference(latchkey.settings.base_url, latchkey.settings.is_local, _theme()))


@blueprint.get("/docs/<path:name>")
@refuses_by_page
def guide(name: str) -> Response:
    """Show a guide, or a file that one links to."""
    path = guides.library().get(f"docs/{name}")
    if path is None:
        raise ApiError("not_found")
    if path.suffix == ".md":
        return _zipped(_page(), _guide(f"docs/{name}", _theme()))
    return Response(
        (guides.ROOT / path).read_bytes(),
        # Examples are text: a browser runs none of them.
        mimetype=LOGO_TYPES.get(path.suffix, "text/plain"),
        headers=_CACHED | {"Content-Security-Policy": "default-src 'none'; sandbox; frame-ancestors 'none'"},
    )


@blueprint.get("/openapi.yaml")
@any_origin
def openapi() -> Response:
    """Return the contract of this API."""
    return _zipped(Response(mimetype="application/yaml"), _contract())


def _theme() -> str | None:
    # The documents are kept for each theme: a cookie that names another must not add to them.
    theme = cookies.sent(THEME)
    return theme if theme in ("light", "dark") else None


def _page(html: str = "") -> Response:
    response = Response(html)
    response.vary.add("Cookie")
    # Requests can be tried on the machine of a developer only.
    connects = "'self'" if latchkey.settings.is_local else "'none'"
    response.headers["Content-Security-Policy"] = _CSP.format(connects)
    return response


def _zipped(response: Response, content: bytes) -> Response:
    """Complete a response with its gzipped body."""
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
    return gzip.compress(OPENAPI)


@functools.cache
def _reference(base_url: str, is_local: bool, theme: str | None) -> bytes:
    values = {"theme": theme, "reference": Reference(), "base_url": base_url, "is_local": is_local}
    return gzip.compress(_render("api.html", PAGE, "HTTP API", **values).encode())


@functools.cache
def _guide(name: str, theme: str | None) -> bytes:
    first, *others = guides.sections(name)
    contents = [section for section in others if section.level == 2]
    values = {"theme": theme, "guide": guides.html(name), "contents": contents, "anchor": first.anchor}
    return gzip.compress(_render("guide.html", name, first.heading, **values).encode())


def _render(template: str, name: str, title: str, **values: Any) -> str:
    common = {
        "name": name,
        "title": title,
        "language": "en",
        "root": "../" * name.count("/"),
        "groups": guides.groups(),
    }
    return render_template(f"docs/{template}", **common | values)


@functools.cache
def _sections() -> list[tuple[str, guides.Section]]:
    """Return the sections, each with the text that is searched."""
    listed = [name for row in guides.groups().values() for name in row]
    others = sorted(name for name, path in guides.library().items() if path.suffix == ".md")
    names = dict.fromkeys([*listed, *others])
    found = [*Reference().sections(), *(section for name in names for section in guides.sections(name))]
    return [(f"{each.title} {each.heading} {each.text}".lower(), each) for each in found]


def _find(words: list[str]) -> list[guides.Section]:
    """Return the sections that contain all words, first those with the most in the heading."""
    found = [section for text, section in _sections() if all(word in text for word in words)]
    return sorted(found, key=lambda section: -sum(word in section.heading.lower() for word in words))


def _snippet(section: guides.Section, word: str) -> str:
    start = max(0, section.text.lower().find(word) - _SNIPPET // 2)
    return section.text[start : start + _SNIPPET]
