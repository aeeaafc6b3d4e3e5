"""The few pages that people see: small, in their language, and closed to everything but their own style sheet.

What they say is in page_texts/, one file for each language. Each page has its strings in a table there.
"""

import tomllib
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from flask import Response, render_template, request
from jinja2 import Environment, StrictUndefined, Template
from markupsafe import Markup

from auth.context import latchkey
from auth.delivery import languages

_TEXTS = Path(__file__).parent / "page_texts"
_CSP = "default-src 'none'; style-src 'self'; {script}form-action 'self'{target}; frame-ancestors 'none'; base-uri 'none'"
_strings = Environment(autoescape=True, undefined=StrictUndefined)


def page(template: str, *, status: int = 200, form_target: str | None = None, script: bool = False, **values: Any) -> Response:
    """Return a page. `form_target` is the origin that a form's answer redirects to: browsers apply form-action to that too.

    Its template calls `say(table, name, …)` for a string, `address(…)` and `address(masked(…))` for whose address that names,
    and puts `root` before each path of this service.
    """
    language = languages.choose(LANGUAGES, None, request.headers.get("Accept-Language"))
    settings = latchkey.settings
    site = urlsplit(settings.site_url).netloc

    def say(table: str, name: str, **others: Any) -> Markup:
        return Markup(_CATALOGUES[language][table][name].render(site=site, **others))  # noqa: S704 (escaped by rendering)

    common = {"language": language, "say": say, "address": _address, "masked": _masked, "root": _root()}
    urls = {"site_url": settings.site_url, "base_url": settings.base_url}
    response = Response(render_template(template, **common, **urls, **values), status)
    response.headers["Content-Security-Policy"] = _CSP.format(script="script-src 'self'; " if script else "", target=f" {form_target}" if form_target else "")
    response.vary.add("Accept-Language")
    return response


def _address(text: str) -> Markup:
    """Return an address that stands in a sentence of any language, and in any script, as one word that nobody translates."""
    return Markup('<bdi translate="no">{}</bdi>').format(text)


def _masked(address: str) -> str:
    """Return what only its owner recognises an address by: `a…@x.org`, or the end of a number."""
    name, at, domain = address.rpartition("@")
    return f"{name[0]}…@{domain}" if at else f"…{address[-3:]}"


def _root() -> str:
    """Return what leads from this page to the service's root, wherever a proxy has put that.

    From most pages it is some steps up. The page at / can be at `/auth` as well as at `/auth/`, which a browser takes for
    different places: from there only the whole path leads anywhere.
    """
    if request.path == "/":
        return f"{urlsplit(latchkey.settings.base_url).path}/"
    return "../" * (request.path.count("/") - 1)


def _read(path: Path) -> dict[str, dict[str, Template]]:
    tables = tomllib.loads(path.read_text(encoding="utf-8"))
    return {table: {name: _strings.from_string(text) for name, text in strings.items()} for table, strings in tables.items()}


_CATALOGUES = {path.stem: _read(path) for path in sorted(_TEXTS.glob("*.toml"))}
LANGUAGES = sorted(_CATALOGUES)
