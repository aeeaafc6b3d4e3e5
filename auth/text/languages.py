"""The language of a reader, and times as it writes them."""

import re
from collections.abc import Collection
from datetime import UTC, date, datetime, timedelta

from babel import Locale, UnknownLocaleError
from babel.dates import format_date, format_timedelta, get_datetime_format

from auth.text.catalogues import DEFAULT

# The format of `strftime` for a time of day.
TIME = "%H:%M UTC"
_LONGEST_HEADER = 500
_LANGUAGE_RANGE = re.compile(
    r"\s*([a-zA-Z]{2,3})(?:-[a-zA-Z0-9-]*)?\s*(?:;\s*q\s*=\s*(0(?:\.[0-9]{0,3})?|1(?:\.0{0,3})?)\s*)?"
)
_LANGUAGE_TAG = re.compile(r"([a-zA-Z]{2,3})(?:[-_][a-zA-Z0-9_-]*)?")


def choose(supported: Collection[str], locale: object, accept_language: object) -> str:
    """Return the language of the user's locale, else the browser's, else English. Accepts any JSON values."""
    if isinstance(locale, str) and (tag := _LANGUAGE_TAG.fullmatch(locale)) and tag[1].lower() in supported:
        return tag[1].lower()
    accepted = _accepted(accept_language[:_LONGEST_HEADER]) if isinstance(accept_language, str) else []
    return next((language for language in accepted if language in supported), DEFAULT)


def date_and_time(moment: datetime, language: str) -> str:
    """Return a time as the language writes it, such as `May 6, 2026, 07:08 UTC`."""
    moment = moment.astimezone(UTC)
    order = str(get_datetime_format("medium", locale=_locale(language)))
    return order.format(moment.strftime(TIME), date_alone(moment, language))


def date_alone(day: date, language: str) -> str:
    """Return a date as the language writes it, such as `May 6, 2026`."""
    return format_date(day, "long", _locale(language))


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
