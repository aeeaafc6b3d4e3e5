"""Pages for people, in their language and theme, with the operator's colours and logo.

The texts are in auth/core/text/pages.
"""

import functools
import math
import re
from collections.abc import Iterable
from datetime import date
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from flask import Flask, Response, render_template, request
from markupsafe import Markup, escape

from auth.core.addresses import spaced_phone
from auth.core.net.redirects import is_web, origin, with_query
from auth.core.settings import Settings
from auth.core.settings.brand import is_svg, logo_file
from auth.core.settings.presets import PRESETS
from auth.core.settings.providers import PROVIDER_PREFIX
from auth.core.text import languages, masking, moments, names, user_agents
from auth.core.text.catalogues import DEFAULT, built_in, number, string
from auth.flows.sign_in.oauth import name_of_customers
from auth.html import forms
from auth.registry import Waiting
from auth.web import cookies, g
from auth.web.application import redirect
from auth.web.context import latchkey
from auth.web.edge import hide_from_other_origins

# The providers with a mark of ours. The others show the first letter of their title.
_PROVIDERS_WITH_MARK = PRESETS.keys() & {
    path.stem for path in (Path(__file__).parent / "templates" / "marks").glob("*.svg")
}
# The languages, each with its own name.
LANGUAGES = {code: texts["common.language"] for code, texts in built_in("pages").items()}
_CSP = (
    "default-src 'none'; style-src 'self'; {script}{images}form-action 'self'{form_target}; "
    "frame-ancestors 'none'; base-uri 'none'"
)
_SCRIPT = "script-src 'self'; connect-src 'self'; "
# An email cannot run anything, loads only the logo, and has an opaque origin.
_MESSAGE_CSP = (
    "sandbox; default-src 'none'; style-src 'unsafe-inline'; {images}form-action 'none'; "
    "frame-ancestors 'self'; base-uri 'none'"
)

_OWN_PAGES = ("/account", "/console")
# These pages belong to a sign-in, which an application may have opened in a window.
_SIGN_IN_PARAMETERS = {"next", "redirect_to", "code_challenge"}
# Longer addresses may break at punctuation. The longest phone number fits in a heading on the smallest phone.
_LONGEST_LINE = 21
# Cookies of the footer's choices.
LANGUAGE, THEME = "latchkey_language", "latchkey_theme"


def register(app: Flask, settings: Settings) -> None:
    """Add the functions and variables of all templates.

    `address(…)` or `address(masked(…))` is for addresses in texts and `application(…)` for the names of
    applications.
    """
    app.jinja_env.globals |= {
        "settings": settings,
        "languages": LANGUAGES,
        "identifier": identifier,
        "is_svg": is_svg,
        "address": address,
        "application": application,
        "link_to": link_to,
        "masked": masking.masked,
        "provider_title": provider_title,
        "sentences": sentences,
    }


def page(
    template: str,
    *,
    status: int = 200,
    form_target: str | None = None,
    script: bool = False,
    client_logo: str | None = None,
    next_page: str | None = None,
    language: str | None = None,
    **values: object,
) -> Response:
    """Render a page, perhaps with the logo of an application. Its forms have the token `form_token`, and may
    redirect to the application `form_target`.

    The forms may continue to `next_page`, else to the `next` of the request: from the consent page also to
    the application that waits for it. form-action must allow the scheme of an application on the device. A
    form never redirects to a website: see auth/html/leaving.py.

    Templates call `say(table, name, …)` for texts, and prefix paths of this service with `root`.
    """
    language, secret = language or chosen_language(), forms.form_secret()
    next_page = next_page or request.values.get("next")
    waiting = waiting_behind(next_page) if next_page else None
    targets = [form_target, waiting and waiting.redirect_uri]
    common = {
        "language": language,
        "theme": cookies.read(THEME),
        # A query may contain a token, which must be in one field only.
        "here": None if request.args else request.path,
        "logo": _logo("AUTH_BRAND_LOGO", "brand/logo"),
        "say": functools.partial(_say, latchkey.settings, language),
        "number": functools.partial(number, language=language),
        "ago": functools.partial(moments.ago, language=language),
        "wait": functools.partial(moments.wait, language=language),
        "lasted": functools.partial(moments.lasted, language=language),
        "device": functools.partial(user_agents.device, language=language),
        "root": root(),
        "form_token": forms.token_of(secret),
        "script": script,
        "client_logo": client_logo,
        "behind": waiting,
        "purpose_texts": purpose_of(next_page) if next_page else None,
    }
    response = Response(render_template(template, **common | values), status)
    forms.remember(response, secret)
    response.headers["Content-Security-Policy"] = _CSP.format(
        script=_SCRIPT if script else "",
        images=logo_source("brand/icon", client_logo, *latchkey.settings.logos.values()),
        form_target="".join(f" {origin(target)}" for target in targets if target and not is_web(target)),
    )
    if request.path.startswith(_OWN_PAGES) and _SIGN_IN_PARAMETERS.isdisjoint(request.values):
        response.headers["Cross-Origin-Opener-Policy"] = "same-origin"
    response.vary.add("Accept-Language")
    return hide_from_other_origins(response)


def waiting_behind(next_page: str) -> Waiting | None:
    """Return the application that a page continues to, or None."""
    waiting = (each.waiting_behind(next_page) for each in latchkey.extensions)
    return next(filter(None, waiting), None)


def purpose_of(next_page: str) -> str | None:
    """Return the table of texts that say what a sign-in before a page is for, or None."""
    purposes = (each.purpose_of(next_page) for each in latchkey.extensions)
    return next(filter(None, purposes), None)


def next_code(wait: float) -> dict[str, Any]:
    """Return the text of a page that may send another code in `wait` seconds."""
    again_in = math.ceil(wait)
    return {
        "again_in": again_in,
        "again_wait": moments.wait(again_in, chosen_language()) if again_in else None,
    }


def chosen_language() -> str:
    """Return the language chosen in the footer, else the browser's."""
    if g.route.guard == "administrator":
        # The console has the language of the API's errors, which operators also read.
        return DEFAULT
    return languages.choose(LANGUAGES, cookies.read(LANGUAGE), request.headers.get("Accept-Language"))


def root() -> str:
    """Return the relative URL of the service's root, which a proxy may serve as /auth or /auth/."""
    if request.path == "/":
        return f"{urlsplit(latchkey.settings.base_url).path}/"
    return "../" * (request.path.count("/") - 1)


def redirect_to_own(path: str, done: str = "", error_code: str = "", removed: str = "") -> Response:
    """Redirect to a path of this service, without its leading slash.

    The page shows the message `done`, or the error. `removed` is the id of a factor whose credential the
    browser may forget.
    """
    values = {"done": done, "error_code": error_code, "removed": removed}
    result = {name: value for name, value in values.items() if value}
    path = with_query(path, forms.signed_query(**result)) if result else path
    return redirect(f"{root()}{path}" or "./")


def text(table: str, name: str, /, **variables: object) -> Markup:
    """Return a text in the reader's language."""
    return _say(latchkey.settings, chosen_language(), table, name, **variables)


def has_text(table: str, name: str) -> bool:
    return f"{table}.{name}" in built_in("pages")[DEFAULT]


def identifier() -> str | None:
    """Return which identifier users enter to sign in, as the name of its text; None if there is none."""
    settings = latchkey.settings
    if settings.email_enabled:
        return "email_or_phone" if settings.offers_phone else "email"
    return "phone" if settings.offers_phone else None


def sentences(*texts: str | None) -> Markup:
    """Return the texts that are not empty, as one paragraph."""
    return _without_spaces(Markup(" ").join(filter(None, texts)), chosen_language())


def _say(settings: Settings, language: str, table: str, name: str, /, **variables: object) -> Markup:
    render = _render if variables else _render_once
    return render(language, f"{table}.{name}", settings.brand_name, settings.support_url, **variables)


def _render(language: str, name: str, brand: str, support_url: str | None, /, **variables: object) -> Markup:
    html = built_in("pages")[language][name]
    # Four of five texts are HTML as they are. Compiling one would take 0.4 ms and 3 kB of each worker.
    if "{" in html:
        contact = link_to(support_url, brand) if support_url else brand
        common = {"brand": brand, "contact": contact}
        html = string("pages", language, name).render(common, **variables)
    return _without_spaces(html, language)


# A page has twenty to sixty texts without variables: rendering them took a sixth of its time. There are 2,800
# for each brand.
_render_once = functools.lru_cache(maxsize=4096)(_render)


def link_to(url: str, text: str) -> Markup:
    """Return a link to a page of the operator's."""
    return Markup('<a href="{}" rel="noopener">{}</a>').format(url, text)


def _without_spaces(html: str, language: str) -> Markup:
    return Markup(languages.without_chinese_spaces(html, language))  # noqa: S704 (escaped)


def _logo(setting: str, path: str) -> str | None:
    """Return the URL of a setting's logo, or None. We serve a file at this path."""
    logo = latchkey.settings.logos.get(setting)
    if logo is None or logo.startswith("https://"):
        return logo
    return f"{root()}{path}" if logo_file(setting, logo) else None


def logo_source(*logos: str | None) -> str:
    """Return the directive of a Content-Security-Policy that allows the logos."""
    sources = [origin(logo) if logo.startswith("https://") else "'self'" for logo in logos if logo]
    return f"img-src {' '.join(dict.fromkeys(sources))}; " if sources else ""


def message_frame(html: str) -> Response:
    """Return the HTML of an email, for a sandboxed frame of a page."""
    policy = _MESSAGE_CSP.format(images=logo_source(latchkey.settings.brand_logo))
    return Response(html, headers={"Content-Security-Policy": policy})


def ago(timestamp: str) -> Markup:
    return moments.ago(timestamp, chosen_language())


def time_of_day(timestamp: str) -> Markup:
    return moments.time_of_day(timestamp, chosen_language())


def expires(timestamp: str) -> Markup:
    return moments.expires(timestamp, chosen_language())


def date_alone(day: date) -> str:
    return languages.date_alone(day, chosen_language())


def provider(name: str) -> dict[str, Any]:
    """Return a provider's title, and the URL of its logo or the template of its mark, if it has one."""
    title = names.provider(name, latchkey.settings.providers) or name
    logo = _logo(f"{PROVIDER_PREFIX}{name.upper()}_LOGO", f"brand/logo/{name}")
    mark = f"marks/{name}.svg" if name in _PROVIDERS_WITH_MARK else None
    return {"name": name, "title": title, "logo": logo, "mark": None if logo else mark}


def provider_title(name: str) -> str:
    """Return the name of the provider of an identity: of a customer's, as its owner chose it."""
    return name_of_customers(latchkey.db, name) or provider(name)["title"]


def address(text: str) -> Markup:
    """Isolate an address in right-to-left text, exclude it from translation, and break it only after
    punctuation.
    """
    text = spaced_phone(text)
    parts = [text] if len(text) <= _LONGEST_LINE else re.split("(?<=[@.])(?=.)", text)
    html = [
        # Keep it on one line in spite of its hyphens, or the spaces of a phone number.
        Markup('<span class="whole">{}</span>').format(part)
        if re.search("[- ]", part) and len(part) <= _LONGEST_LINE
        else escape(part)
        for part in parts
    ]
    return Markup('<bdi translate="no">{}</bdi>').format(Markup("<wbr>").join(html))


def addresses(texts: Iterable[str]) -> Markup:
    """Return addresses or domains for a sentence."""
    return Markup(", ").join(map(address, texts))


def application(name: str) -> Markup:
    """Return the name of an application, for texts in templates."""
    line = names.in_one_line(name)
    if not line:
        return text("account", "unnamed_application")
    return Markup('<bdi translate="no">{}</bdi>').format(line)
