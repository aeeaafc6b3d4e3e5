"""The language of a reader, and the formats of times in it."""

import re
from collections.abc import Collection
from datetime import UTC, date, datetime, timedelta

from babel import Locale, UnknownLocaleError
from babel.dates import format_date, format_timedelta, get_datetime_format

from auth.core.text.catalogues import DEFAULT, built_in, string

_LONGEST_HEADER = 500
# RFC 9110, section 12.5.4. Locales may also contain an underscore. Without a quality, it is the highest.
_LANGUAGE_RANGE = re.compile(
    r"\s*([a-zA-Z]{2,3})(?:[-_][\w-]*)?\s*(?:;\s*q\s*=\s*([01](?:\.[0-9]{0,3})?)\s*)?"
)
# A place between a number and a Chinese character, where our texts have a space, but Babel's do not.
_CHINESE_GAP = re.compile(r"(?<=\d)(?=[\u4e00-\u9fff])|(?<=[\u4e00-\u9fff])(?=\d)")
# A space between two Chinese characters or signs, also around the tags of a value.
_CHINESE = "[\u2018-\u201d\u3000-\u303f\u4e00-\u9fff\uff00-\uffef]"
_TAGS = "((?:<[^<>]*>)*)"
_CHINESE_SPACE = re.compile(f"(?<={_CHINESE}){_TAGS} {_TAGS}(?={_CHINESE})")


def choose(supported: Collection[str], locale: object, accept_language: object) -> str:
    """Return the language of the user's locale, else the browser's, else English. Accepts any JSON values."""
    parts = [str(locale), *str(accept_language)[:_LONGEST_HEADER].split(",")]
    ranges = [match for part in parts if (match := _LANGUAGE_RANGE.fullmatch(part))]
    choices = [(float(match[2] or 1), match[1].lower()) for match in ranges]
    choices.sort(key=lambda choice: -choice[0])
    return next((language for quality, language in choices if quality and language in supported), DEFAULT)


def without_chinese_spaces(text: str, language: str) -> str:
    """Remove the spaces that Chinese does not use, from a text or from sentences joined by a space.

    Texts have a space around values, which a Chinese name or sentence does not need: `登录飞书`.
    """
    return _CHINESE_SPACE.sub(r"\1\2", text) if language == "zh" else text


def date_and_time(moment: datetime, language: str) -> str:
    """Return a time as the language writes it, such as `May 6, 2026, 07:08 UTC`."""
    moment = moment.astimezone(UTC)
    pattern = str(get_datetime_format("medium", locale=_locale(language)))
    return pattern.format(time_of_day(moment, language), date_alone(moment, language))


def time_of_day(moment: datetime, language: str) -> str:
    supported = language if language in built_in("pages") else DEFAULT
    return string("pages", supported, "time.of_day").render(time=moment.astimezone(UTC).strftime("%H:%M"))


def date_alone(day: date, language: str) -> str:
    """Return a date as the language writes it, such as `May 6, 2026`."""
    return _CHINESE_GAP.sub(" ", format_date(day, "long", _locale(language)))


def duration(lifetime: timedelta, language: str) -> str:
    """Return a duration in words, such as `1 hour`."""
    return _CHINESE_GAP.sub(" ", format_timedelta(lifetime, granularity="minute", locale=_locale(language)))


def _locale(language: str) -> Locale:
    try:
        return Locale.parse(language, sep="-")
    except (ValueError, UnknownLocaleError):  # a language that the operator has added
        return Locale(DEFAULT)
