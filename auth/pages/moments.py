import functools
import math
from datetime import UTC, datetime

from markupsafe import Markup

from auth.pages.page import chosen_language, text_in

_UNITS = (("days", 86_400), ("hours", 3600), ("minutes", 60))


def ago(timestamp: str) -> Markup:
    """Return how long ago a time was, in words, with the time itself as title."""
    moment = datetime.fromisoformat(timestamp)
    seconds = (datetime.now(UTC) - moment).total_seconds()
    name, unit = next(((name, unit) for name, unit in _UNITS if seconds >= unit), ("now", 1))
    words = _words(chosen_language(), name, int(seconds // unit))
    exact = moment.astimezone(UTC).isoformat(timespec="seconds")
    title = f"{exact[:10]} {exact[11:16]} UTC"
    return Markup(f'<time datetime="{exact}" title="{title}">{words}</time>')  # noqa: S704 (escaped)


def wait(seconds: int) -> Markup:
    """Return how long to wait, in words; never shorter than it takes."""
    minutes = math.ceil(seconds / 60)
    name, number = ("minutes", minutes) if minutes < 60 else ("hours", math.ceil(minutes / 60))
    return text_in(chosen_language(), "wait", name, n=number)


# A list of the console has fifty of them: without the cache they take a third of its time.
@functools.lru_cache(maxsize=1024)
def _words(language: str, name: str, number: int) -> Markup:
    return text_in(language, "ago", name, n=number)
