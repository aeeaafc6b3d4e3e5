"""The overview: daily activity, failures, the health of the service, and its settings."""

from collections.abc import Sequence
from typing import Any

from flask import Blueprint, Response

from auth import __version__
from auth.console.access import administrator
from auth.console.page import console_page
from auth.context import latchkey
from auth.settings.listing import DEFAULT, listed

blueprint = Blueprint("overview", __name__)

_DAYS = 30
# A larger number is shown as "10,000 or more".
_MOST = 10_000
_CHARTS = {"sign_ins": "Sign-ins", "sign_ups": "New users", "refused": "Refused sign-ins"}
_FAILURES = {
    "sign_in_refused": "Sign-ins refused",
    "sign_up_refused": "Sign-ups refused",
    "verification_refused": "Links and codes refused",
    "factor_refused": "Second-factor codes refused",
    "oauth_refused": "Provider sign-ins refused",
    "refresh_refused": "Refresh tokens refused",
    "refresh_token_reused": "Refresh tokens reused",
    "change_refused": "User changes refused",
    "admin_refused": "Administrator requests refused",
    "messages_failed": "Messages not sent",
    "messages_expired": "Messages expired",
}
_HEIGHT, _STEP = 100, 10


@blueprint.get("/console")
@administrator
def show_overview() -> Response:
    days = latchkey.db.all("list_daily_counts", days=_DAYS)
    return console_page(
        "overview.html",
        charts=[_chart(days, name, title) for name, title in _CHARTS.items()],
        days=days,
        failures=latchkey.db.all("list_failures"),
        failure_names=_FAILURES,
        health=latchkey.db.one("select_health", most=_MOST),
        most=_MOST,
        needs_backup=not latchkey.settings.is_local,
        version=__version__,
    )


@blueprint.get("/console/settings")
@administrator
def show_settings() -> Response:
    """Show the settings of this node: those that are set, then the defaults."""
    found = list(listed(latchkey.key_ring.settings))
    return console_page(
        "settings.html",
        chosen=[each for each in found if each.origin != DEFAULT],
        defaults=[each for each in found if each.origin == DEFAULT],
    )


def _chart(days: Sequence[Any], name: str, title: str) -> dict[str, Any]:
    """Return the bars of a chart `_HEIGHT` high, one every `_STEP`."""
    counts = [getattr(day, name) for day in days]
    most = max(counts)
    heights = [round(count * _HEIGHT / most, 1) if most else 0 for count in counts]
    return {
        "title": title,
        "today": counts[-1],
        "most": most,
        "width": len(days) * _STEP,
        "bars": [
            {"day": day.day, "count": count, "x": place * _STEP, "y": _HEIGHT - height, "height": height}
            for place, (day, count, height) in enumerate(zip(days, counts, heights, strict=True))
        ],
    }
