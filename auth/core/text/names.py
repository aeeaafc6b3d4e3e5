"""Names from users, providers and URLs, made safe for texts: none may look like a link."""

import re
from collections.abc import Mapping

from auth.core import normalize
from auth.core.settings.presets import PRESETS
from auth.core.settings.providers import ProviderSettings

_PROVIDERS = {name: name.title() for name in PRESETS} | {
    "azure": "Microsoft",
    "github": "GitHub",
    "gitlab": "GitLab",
    "keycloak": "Keycloak",
    "linkedin": "LinkedIn",
    "workos": "WorkOS",
}
# The prefix of customers' providers.
PREFIX = "sso:"
_CUSTOMERS = "SSO"
_PROVIDER_NAME = re.compile(r"(?:custom:)?[a-z0-9_-]{1,40}")
_LONGEST_NAME, _LONGEST_ORGANIZATION = 80, 100
# Browsers take an ideographic full stop for a dot (UTS #46).
_LIKE_A_LINK = re.compile(r"[@/:]|\w[.\u3002]\w")
# The members of metadata that contain the name of a user.
MEMBERS = ("name", "full_name", "given_name", "family_name")


def provider(name: object, providers: Mapping[str, ProviderSettings]) -> str | None:
    """Return the name of a provider that users see: the title in the settings, or our name."""
    if isinstance(name, str) and name.startswith(PREFIX):
        return _CUSTOMERS
    if not isinstance(name, str) or not _PROVIDER_NAME.fullmatch(name):
        return None
    settings = providers.get(name)
    return (settings and settings.title) or _PROVIDERS.get(name, name)


def customers_provider(name: object) -> str:
    """Return the name that its owner gave a customer's provider, ours if that looks like a link."""
    return organization(name) or _CUSTOMERS


def of_user(metadata: Mapping[str, object]) -> str | None:
    """Return the name in a user's metadata, as the SQL function `name_of` does."""
    given, family = (_text(metadata, name) for name in ("given_name", "family_name"))
    return _text(metadata, "name") or _text(metadata, "full_name") or f"{given} {family}".strip(" ") or None


def _text(metadata: Mapping[str, object], name: str) -> str:
    value = metadata.get(name)
    return value if isinstance(value, str) else ""


def person(name: object) -> str | None:
    """Return a user's name, unless it is long or looks like an address or a link."""
    text = application(name)
    return None if text is None or _is_like_a_link(text) else text


def organization(name: object) -> str | None:
    """Return the name that owners gave an organization, unless it looks like an address or a link."""
    text = normalize.name(name, _LONGEST_ORGANIZATION)
    return None if text is None or _is_like_a_link(text) else text


def _is_like_a_link(text: str) -> bool:
    # Mail clients may leave out joiners, and read a full-width dot as a dot.
    return bool(_LIKE_A_LINK.search(normalize.visible(text)))


def in_one_line(name: str) -> str:
    """Return the name of an application, which a stranger may have chosen, in one line of 80 characters.

    Empty if nobody sees it.
    """
    line = whole_line(name)
    return line if len(line) <= _LONGEST_NAME else line[: _LONGEST_NAME - 1] + "…"


def whole_line(name: str) -> str:
    """Return a name in one line, however long it is. Empty if nobody sees it."""
    return "" if normalize.is_blank(name) else " ".join(normalize.in_one_line(name).split())


def person_in_line(name: str) -> str | None:
    """Return a user's name in one line of 80 characters. None for one that nobody sees or that looks like an
    address.
    """
    line = in_one_line(name)
    return None if not line or "@" in normalize.visible(line) else line


def application(name: object) -> str | None:
    """Return the name that an operator gave an application, unless it is long."""
    return normalize.name(name, _LONGEST_NAME)
