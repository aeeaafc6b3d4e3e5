"""The languages of messages and pages."""

import functools
import re
import tomllib
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path

from babel import Locale, UnknownLocaleError
from babel.dates import format_date, format_timedelta, get_datetime_format

TEMPLATES = Path(__file__).parent / "templates"
DEFAULT = "en"
# The format of `strftime` for a time of day.
TIME = "%H:%M UTC"
_LONGEST_HEADER = 500
_LANGUAGE_RANGE = re.compile(
    r"\s*([a-zA-Z]{2,3})(?:-[a-zA-Z0-9-]*)?\s*(?:;\s*q\s*=\s*(0(?:\.[0-9]{0,3})?|1(?:\.0{0,3})?)\s*)?"
)
_LANGUAGE_TAG = re.compile(r"([a-zA-Z]{2,3})(?:[-_][a-zA-Z0-9_-]*)?")


def load_catalogues(folder: Path | None = None) -> dict[str, dict[str, str]]:
    """Return each language's strings by name; `folder` may replace strings and add languages.

    Raises `ValueError` with a message for the operator.
    """
    catalogues = dict(_built_in())
    names = catalogues[DEFAULT].keys()
    for path in sorted(folder.glob("*.toml")) if folder else []:
        custom = _read(path)
        if unknown := custom.keys() - names:
            raise ValueError(f"{path.name}: there is no string {min(unknown)}")
        catalogues[path.stem] = catalogues.get(path.stem, {}) | custom
        if missing := names - catalogues[path.stem].keys():
            raise ValueError(f"{path.name}: the string {min(missing)} is missing")
    return catalogues


def choose(supported: Sequence[str], locale: object, accept_language: object) -> str:
    """Return the language of the user's locale, else the browser's, else English. Accepts any JSON values."""
    if isinstance(locale, str) and (tag := _LANGUAGE_TAG.fullmatch(locale)) and tag[1].lower() in supported:
        return tag[1].lower()
    accepted = _accepted(accept_language[:_LONGEST_HEADER]) if isinstance(accept_language, str) else []
    return next((language for language in accepted if language in supported), DEFAULT)


def date_and_time(moment: datetime, language: str) -> str:
    """Return a time as the language writes it, such as `May 6, 2026, 07:08 UTC`."""
    locale = _locale(language)
    moment = moment.astimezone(UTC)
    order = str(get_datetime_format("medium", locale=locale))
    return order.format(moment.strftime(TIME), format_date(moment, "long", locale))


def duration(lifetime: timedelta, language: str) -> str:
    """Return a duration in words, such as `1 hour`."""
    return format_timedelta(lifetime, granularity="minute", locale=_locale(language))


def _locale(language: str) -> Locale:
    try:
        return Locale.parse(language, sep="-")
    except (ValueError, UnknownLocaleError):  # an operator's own language
        return Locale(DEFAULT)


def _accepted(header: str) -> list[str]:
    """Return the languages of an Accept-Language header in order of preference (RFC 9110, section 12.5.4)."""
    ranges = [match for part in header.split(",") if (match := _LANGUAGE_RANGE.fullmatch(part))]
    qualities = [(float(match[2] or 1), match[1].lower()) for match in ranges]
    return [language for quality, language in sorted(qualities, key=lambda pair: -pair[0]) if quality]


@functools.cache
def _built_in() -> dict[str, dict[str, str]]:
    return {path.stem: _read(path) for path in sorted(TEMPLATES.glob("*.toml"))}


def _read(path: Path) -> dict[str, str]:
    try:
        strings = {
            f"{channel}.{kind}.{name}": text
            for channel, kinds in tomllib.loads(path.read_text(encoding="utf-8")).items()
            for kind, texts in kinds.items()
            for name, text in texts.items()
        }
    except (ValueError, OSError) as error:
        raise ValueError(f"{path.name}: {error}") from None
    except AttributeError:
        strings = {"": None}
    if not all(isinstance(text, str) for text in strings.values()):
        raise ValueError(f"{path.name}: must contain strings in tables [channel.kind]")
    return strings
