"""Stored times, formatted for people."""

import functools
import math
from datetime import UTC, datetime
from typing import overload

from markupsafe import Markup, escape

from auth.core.text import languages
from auth.core.text.catalogues import DEFAULT, string

_UNITS = (("days", 86_400), ("hours", 3600), ("minutes", 60))


@overload
def iso_8601(moment: datetime) -> str: ...


@overload
def iso_8601(moment: None) -> None: ...


def iso_8601(moment: datetime | None) -> str | None:
    """Return a time as the API writes it."""
    if moment is None:
        return None
    return moment.astimezone(UTC).isoformat(timespec="microseconds").replace("+00:00", "Z")


def ago(timestamp: str, language: str) -> Markup:
    """Return how long ago a time was, such as `3 minutes ago`, with the time itself as title."""
    moment = datetime.fromisoformat(timestamp)
    seconds = (datetime.now(UTC) - moment).total_seconds()
    name, unit = next(((name, unit) for name, unit in _UNITS if seconds >= unit), ("now", 1))
    return _with_exact(moment, _words(language, f"ago.{name}", int(seconds // unit)))


def expires(timestamp: str, language: str) -> Markup:
    """Return how soon a time is, such as `expires in 6 days`, with the time itself as title."""
    moment = datetime.fromisoformat(timestamp)
    now = datetime.now(UTC)
    hours = int((moment - now).total_seconds() // 3600)
    if hours >= 24:
        # "Tomorrow" is a date.
        days = (moment.astimezone(UTC).date() - now.date()).days
        return _with_exact(moment, _words(language, "expires.days", days))
    return _with_exact(moment, _words(language, "expires.hours" if hours > 0 else "expires.soon", hours))


def time_of_day(timestamp: str, language: str) -> Markup:
    """Return the time of day, such as `07:08 UTC`, with the time itself as title."""
    moment = datetime.fromisoformat(timestamp)
    return _with_exact(moment, escape(languages.time_of_day(moment, language)))


def _with_exact(moment: datetime, words: Markup) -> Markup:
    exact = moment.astimezone(UTC).isoformat(timespec="seconds")
    title = f"{exact[:10]} {exact[11:19]} UTC"
    return Markup(f'<time datetime="{exact}" title="{title}">{words}</time>')  # noqa: S704 (escaped)


def lasted(timestamp: str, language: str) -> Markup:
    """Return the duration since a time, such as `3 minutes`."""
    minutes = int((datetime.now(UTC) - datetime.fromisoformat(timestamp)).total_seconds() // 60)
    if minutes < 1:
        return _words(language, "wait.now", 1)
    name, unit = "minutes", 1
    if minutes >= 48 * 60:
        name, unit = "days", 24 * 60
    elif minutes >= 60:
        name, unit = "hours", 60
    return _words(language, f"wait.{name}", minutes // unit)


def wait(seconds: int, language: str) -> Markup:
    """Return how long to wait, such as `2 hours`, rounded up."""
    minutes = math.ceil(seconds / 60)
    hours = math.ceil(minutes / 60)
    name, number = "minutes", minutes
    if hours > 48:
        name, number = "days", math.ceil(hours / 24)
    elif minutes >= 60:
        name, number = "hours", hours
    return _words(language, f"wait.{name}", number)


def clock(timestamp: str) -> str:
    """Return a time as logs write it: `2026-01-31 12:00:00`."""
    return datetime.fromisoformat(timestamp).strftime("%Y-%m-%d %H:%M:%S")


def minute(timestamp: str) -> str:
    """Return a time without its seconds: `2026-01-31 12:00`."""
    return clock(timestamp)[:-3]


def until(timestamp: str) -> str:
    """Return the end of a ban: `until 2026-01-31 12:00:00 UTC`, or `permanently`."""
    name = "permanently" if timestamp.startswith("9999") else "until"
    return string("console", DEFAULT, f"details.{name}").render(at=clock(timestamp))


# A list of the console shows fifty of them. Without the cache, they take a third of its time.
@functools.lru_cache(maxsize=1024)
def _words(language: str, name: str, number: int) -> Markup:
    return Markup(string("pages", language, name).render(n=number))  # noqa: S704 (escaped)
