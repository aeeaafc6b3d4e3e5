"""Reads User-Agent headers without quoting them: anyone can send any text."""

import functools
import re

from auth.core.text.catalogues import string

# The first match counts, because browsers also include the names of their ancestors.
_BROWSERS = (
    ("Edge", r"Edg(e|A|iOS)?/"),
    ("Opera", r"OPR/|Opera"),
    ("Samsung Internet", r"SamsungBrowser/"),
    ("Firefox", r"Firefox/|FxiOS/"),
    ("Chrome", r"Chrome/|CriOS/"),
    ("Safari", r"Version/[\d.]+ .*Safari/"),
)
_SYSTEMS = (
    ("iOS", r"iPhone|iPad|iPod"),
    ("Android", r"Android"),
    ("Windows", r"Windows"),
    ("macOS", r"Macintosh|Mac OS X"),
    ("ChromeOS", r"CrOS"),
    ("Linux", r"Linux|X11"),
)
_PROGRAMS = (
    ("curl", r"^curl/"),
    ("Python", r"(?i)^(python-|aiohttp/)"),
    ("Node.js", r"^(node|undici|axios)\b"),
    ("Go", r"^Go-http-client/"),
    ("Java", r"^(Java|okhttp)/"),
    ("PHP", r"^(GuzzleHttp|PHP)/"),
)
_LONGEST = 512


def browser_and_system(user_agent: object) -> tuple[str | None, str | None]:
    """Return the families of a User-Agent header: `("Firefox", "Linux")`."""
    text = user_agent[:_LONGEST] if isinstance(user_agent, str) else ""
    return _first_match(_BROWSERS, text), _first_match(_SYSTEMS, text)


def device(user_agent: object, language: str = "en") -> str | None:
    """Return `Firefox on Linux` or the known part of it; the tool or language of another program."""
    browser, system = browser_and_system(user_agent)
    if browser and system:
        return _browser_on_system(browser, system, language)
    return browser or system or _first_match(_PROGRAMS, str(user_agent)[:_LONGEST])


# Two thirds of the time of `device`, for each session of the account page.
@functools.cache
def _browser_on_system(browser: str, system: str, language: str) -> str:
    phrase = string("messages", language, "email.common.browser")
    return phrase.render(browser_name=browser, system_name=system)


def _first_match(families: tuple[tuple[str, str], ...], text: str) -> str | None:
    return next((name for name, pattern in families if re.search(pattern, text)), None)
