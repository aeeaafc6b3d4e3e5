"""The languages of messages and pages: their catalogues of strings, and the choice for a user."""

import re
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

TEMPLATES = Path(__file__).parent / "templates"
DEFAULT = "en"
# Characters of an Accept-Language header that are read.
_LONGEST_HEADER = 500
_LANGUAGE_RANGE = re.compile(
    r"\s*([a-zA-Z]{2,3})(?:-[a-zA-Z0-9-]*)?\s*(?:;\s*q\s*=\s*(0(?:\.[0-9]{0,3})?|1(?:\.0{0,3})?)\s*)?"
)
_LANGUAGE_TAG = re.compile(r"([a-zA-Z]{2,3})(?:[-_][a-zA-Z0-9_-]*)?")

# The strings of one language, by channel, kind and name.
Catalogue = dict[str, dict[str, dict[str, str]]]


def load_catalogues(folder: Path | None = None) -> dict[str, Catalogue]:
    """Return the catalogue of each language. The operator's folder may replace strings and add languages.

    Raises `ValueError`, with a message for the operator, for a malformed or incomplete catalogue.
    """
    catalogues = {path.stem: _read(path) for path in sorted(TEMPLATES.glob("*.toml"))}
    needed = set(names(catalogues[DEFAULT]))
    for path in sorted(folder.glob("*.toml")) if folder else []:
        custom = _read(path)
        if unknown := set(names(custom)) - needed:
            raise ValueError(f"{path.name}: there is no string {sorted(unknown)[0]}")
        merged = _merge(catalogues.get(path.stem, {}), custom)
        if missing := needed - set(names(merged)):
            raise ValueError(f"{path.name}: the string {sorted(missing)[0]} is missing")
        catalogues[path.stem] = merged
    return catalogues


def names(catalogue: Catalogue) -> Iterator[str]:
    """Yield the names of all strings: `email.signup.subject`."""
    for channel, kinds in catalogue.items():
        for kind, strings in kinds.items():
            yield from (f"{channel}.{kind}.{name}" for name in strings)


def choose(supported: Sequence[str], locale: object, accept_language: object) -> str:
    """Return the language of the user's locale, else the browser's, else English. Takes any JSON values."""
    if isinstance(locale, str) and (tag := _LANGUAGE_TAG.fullmatch(locale)) and tag[1].lower() in supported:
        return tag[1].lower()
    accepted = _accepted(accept_language[:_LONGEST_HEADER]) if isinstance(accept_language, str) else []
    return next((language for language in accepted if language in supported), DEFAULT)


def _accepted(header: str) -> list[str]:
    """Return the languages of an Accept-Language header, the preferred first (RFC 9110, section 12.5.4)."""
    ranges = [match for part in header.split(",") if (match := _LANGUAGE_RANGE.fullmatch(part))]
    qualities = [(float(match[2] or 1), match[1].lower()) for match in ranges]
    return [language for quality, language in sorted(qualities, key=lambda pair: -pair[0]) if quality]


def _read(path: Path) -> Catalogue:
    try:
        catalogue = tomllib.loads(path.read_text(encoding="utf-8"))
    except (ValueError, OSError) as error:
        raise ValueError(f"{path.name}: {error}") from None
    if not _is_catalogue(catalogue):
        raise ValueError(f"{path.name}: must hold strings in tables [channel.kind]")
    return catalogue


def _is_catalogue(value: Mapping[str, Any], depth: int = 3) -> bool:
    if depth == 1:
        return all(isinstance(text, str) for text in value.values())
    return all(isinstance(table, dict) and _is_catalogue(table, depth - 1) for table in value.values())


def _merge(catalogue: Catalogue, change: Catalogue) -> Catalogue:
    channels = catalogue.keys() | change.keys()
    return {
        channel: {
            kind: catalogue.get(channel, {}).get(kind, {}) | change.get(channel, {}).get(kind, {})
            for kind in catalogue.get(channel, {}).keys() | change.get(channel, {}).keys()
        }
        for channel in channels
    }
