from datetime import UTC, datetime

from markupsafe import Markup

from auth.pages.page import text

_UNITS = (("days", 86_400), ("hours", 3600), ("minutes", 60))


def ago(timestamp: str) -> Markup:
    """Return how long ago a time was, in words, with the time itself as title."""
    moment = datetime.fromisoformat(timestamp)
    seconds = (datetime.now(UTC) - moment).total_seconds()
    name, unit = next(((name, unit) for name, unit in _UNITS if seconds >= unit), ("now", 1))
    words = text("ago", name, n=int(seconds // unit))
    exact = moment.astimezone(UTC).strftime("%Y-%m-%d %H:%M UTC")
    return Markup('<time datetime="{}" title="{}">{}</time>').format(
        moment.isoformat(timespec="seconds"), exact, words
    )
