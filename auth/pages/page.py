"""Pages for users, in their language. The texts are in texts/."""

import tomllib
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from flask import Response, render_template, request
from jinja2 import Environment, StrictUndefined, Template
from markupsafe import Markup

from auth.context import latchkey
from auth.delivery import languages
from auth.web import cookies, forms

_TEXTS = Path(__file__).parent / "texts"
_CSP = "default-src 'none'; style-src 'self'; {}form-action 'self'{}; frame-ancestors 'none'; base-uri 'none'"
_strings = Environment(autoescape=True, undefined=StrictUndefined)


def page(
    template: str, *, status: int = 200, form_target: str | None = None, script: bool = False, **values: Any
) -> Response:
    """Render a page. Its form may redirect to the origin `form_target`, which form-action must allow, and has
    the token `form_token`.

    Templates call `say(table, name, …)` for texts and `address(…)` or `address(masked(…))` for addresses in
    them, and prefix paths of this service with `root`.
    """
    language = languages.choose(LANGUAGES, None, request.headers.get("Accept-Language"))
    settings = latchkey.settings
    site = urlsplit(settings.site_url).netloc

    def say(table: str, name: str, **variables: Any) -> Markup:
        return Markup(_CATALOGUES[language][table][name].render(site=site, **variables))  # noqa: S704 (escaped)

    common = {"language": language, "say": say, "address": _address, "masked": _masked, "root": _root()}
    urls = {"site_url": settings.site_url, "base_url": settings.base_url}
    secret = cookies.browser_secret(forms.COOKIE) if form_target else None
    if secret:
        values["form_token"] = forms.token_of(secret)
    response = Response(render_template(template, **common, **urls, **values), status)
    if secret:
        cookies.remember(response, forms.COOKIE, secret)
    policy = _CSP.format("script-src 'self'; " if script else "", f" {form_target}" if form_target else "")
    response.headers["Content-Security-Policy"] = policy
    response.vary.add("Accept-Language")
    return response


def _address(text: str) -> Markup:
    """Keep an address in one piece in right-to-left text and out of machine translation."""
    return Markup('<bdi translate="no">{}</bdi>').format(text)


def _masked(address: str) -> str:
    """Shorten an address so that only its owner recognises it: `a…@x.org` or `…123`."""
    name, at, domain = address.rpartition("@")
    return f"{name[0]}…@{domain}" if at else f"…{address[-3:]}"


def _root() -> str:
    """Return the relative URL of the service's root, which a proxy may serve as /auth or /auth/."""
    if request.path == "/":
        return f"{urlsplit(latchkey.settings.base_url).path}/"
    return "../" * (request.path.count("/") - 1)


def _read(path: Path) -> dict[str, dict[str, Template]]:
    tables = tomllib.loads(path.read_text(encoding="utf-8")).items()
    return {
        table: {name: _strings.from_string(text) for name, text in texts.items()} for table, texts in tables
    }


_CATALOGUES = {path.stem: _read(path) for path in sorted(_TEXTS.glob("*.toml"))}
LANGUAGES = sorted(_CATALOGUES)
