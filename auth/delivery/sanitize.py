"""Values from users and browsers, made safe for messages, where none may look like a link."""

import re
from collections.abc import Mapping
from datetime import UTC, datetime
from urllib.parse import urlsplit

from auth.settings.presets import PRESETS

# The first match counts, because browsers also name their ancestors.
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
_PROVIDERS = {name: name.title() for name in PRESETS} | {
    "azure": "Microsoft",
    "github": "GitHub",
    "gitlab": "GitLab",
    "linkedin": "LinkedIn",
}
_PROVIDER_NAME = re.compile(r"[a-z0-9_-]{1,40}")
_HOST = re.compile(r"[a-z0-9.:-]{1,253}")
_LONGEST_USER_AGENT = 512
_LONGEST_NAME = 80


def browser_and_system(user_agent: object) -> tuple[str | None, str | None]:
    """Return the families of a User-Agent header: `("Firefox", "Linux")`."""
    text = user_agent[:_LONGEST_USER_AGENT] if isinstance(user_agent, str) else ""
    return _first_match(_BROWSERS, text), _first_match(_SYSTEMS, text)


def provider(name: object, titles: Mapping[str, str]) -> str | None:
    """Return the name of a provider that users see; `titles` are those of the settings."""
    if not isinstance(name, str) or not _PROVIDER_NAME.fullmatch(name):
        return None
    return titles.get(name) or _PROVIDERS.get(name, name)


def person(name: object) -> str | None:
    """Return a user's name, unless it is long or looks like an address or a link."""
    text = name.strip() if isinstance(name, str) else ""
    is_name = text.isprintable() and not re.search(r"[@/:]|\w\.\w", text)
    return text if 0 < len(text) <= _LONGEST_NAME and is_name else None


def host(url: object) -> str | None:
    try:
        name = urlsplit(url).hostname if isinstance(url, str) else None
    except ValueError:
        return None
    return name if name and _HOST.fullmatch(name) else None


def masked_email(address: object) -> str | None:
    """Return an address that only its owner recognises: `b***@e***.com`."""
    if not isinstance(address, str) or "@" not in address:
        return None
    local, _, domain = address.rpartition("@")
    top = domain.rpartition(".")[2]
    return f"{_initial(local)}***@{_initial(domain)}***.{top if top.isalpha() and top.isascii() else '***'}"


def masked_phone(number: object) -> str | None:
    return number[-3:] if isinstance(number, str) and re.fullmatch(r"\+[0-9]{7,15}", number) else None


def moment(text: object, otherwise: datetime) -> datetime:
    """Return an ISO 8601 timestamp in UTC, or `otherwise` if the text is malformed."""
    try:
        parsed = datetime.fromisoformat(text) if isinstance(text, str) else otherwise
        return parsed.astimezone(UTC) if parsed.tzinfo else parsed.replace(tzinfo=UTC)
    except (ValueError, OverflowError):
        return otherwise.astimezone(UTC)


def _initial(text: str) -> str:
    return text[0] if text[:1].isascii() and text[:1].isalnum() else "*"


def _first_match(families: tuple[tuple[str, str], ...], text: str) -> str | None:
    return next((name for name, pattern in families if re.search(pattern, text)), None)
