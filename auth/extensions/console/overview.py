"""The overview: daily activity, failures, the health of the service, and its settings."""

from collections.abc import Iterator, Sequence
from datetime import date
from pathlib import Path
from typing import Any

from flask import Blueprint, Response, request

from auth import __version__
from auth.core.keys import key_kinds
from auth.core.settings import name_of
from auth.core.settings.listing import DEFAULT, Listed, listed
from auth.core.text.labels import counted
from auth.html.admin.access import administrator
from auth.html.admin.console_page import console_page
from auth.web.context import latchkey
from sql import queries

blueprint = Blueprint("overview", __name__)

_DAYS = 30
# A larger number is shown as "10,000 or more".
_MOST = 10_000
_CHARTS = {"sign_ins": "Sign-ins", "sign_ups": "New users", "refused": "Failed sign-ins"}
_TOTALS = {"mail": "Emails requested", "sms": "SMS requested", "notices_sms": "Notices by SMS"}
_HEIGHT, _STEP = 100, 10
Days = Sequence["queries.ListDailyCounts"]


@blueprint.get("/console")
@administrator
def show_overview() -> Response:
    days = queries.list_daily_counts(latchkey.db, days=_DAYS)
    days_before, days = days[:_DAYS], days[_DAYS:]
    limits = latchkey.settings.message_totals if latchkey.settings.rate_limits_enabled else {}
    seconds = [limit.get_expiry() for limit in limits.values()]
    health = queries.select_health(latchkey.db, most=_MOST)
    return console_page(
        "overview.html",
        urgent=list(_urgent(health)),
        charts=[_chart(days, days_before, name, title) for name, title in _CHARTS.items()],
        days=days,
        failures=queries.list_failures(latchkey.db),
        health=health,
        totals=queries.measure_totals(latchkey.db, names=[*limits], seconds=seconds),
        limits=limits,
        titles=_TOTALS,
        most=_MOST,
    )


@blueprint.get("/console/settings")
@administrator
def show_settings() -> Response:
    """Show the settings of this node: first those that are set, then the defaults."""
    part = request.args.get("q", "").strip()
    rows = [
        each for each in listed(latchkey.key_ring.settings) if part.upper().replace(" ", "_") in each.name
    ]
    return console_page(
        "settings.html",
        q=part,
        chosen=[each for each in rows if each.origin != DEFAULT],
        defaults=[each for each in rows if each.origin == DEFAULT],
        where=_origin_of,
        dotenv=Path(".env").resolve(),
        version=__version__,
        health=queries.select_health(latchkey.db, most=1),
    )


def _urgent(health: "queries.SelectHealth") -> Iterator[tuple[str, str]]:
    """Yield each problem that the operator must solve, and the path of the page that shows it, or ""."""
    if health.counted_at and not health.is_delivering:
        yield "The delivery process isn’t running: latchkey doctor says why.", ""
    if health.is_late:
        yield "Messages are late.", "console/messages?state=waiting"
    if failing := health.failing_webhooks:
        yield f"{counted(failing, 'webhook')} {'is' if failing == 1 else 'are'} failing.", "console/webhooks"
    if not latchkey.settings.is_local and not health.is_backed_up:
        yield "The last backup is too old." if health.backed_up_at else "There is no backup yet.", ""


def _origin_of(setting: Listed) -> str:
    kind = next(
        (kind.name for field, kind in key_kinds.BY_FIELD.items() if name_of(field) == setting.name), None
    )
    if kind and setting.origin != "environment":
        return f"{setting.origin}, with latchkey keys rotate {kind}"
    return {"embedded": "embedded, unless DATABASE_URL is set"}.get(setting.origin, setting.origin)


def _chart(days: Days, days_before: Days, name: str, title: str) -> dict[str, Any]:
    """Return the bars of a chart `_HEIGHT` high, one every `_STEP`, and the total of the period before."""
    counts = [getattr(day, name) for day in days]
    total, previous_total = sum(counts), sum(getattr(day, name) for day in days_before)
    # The axis ends at a round and even number, because its middle has a label too.
    unit = max(2, 10 ** (len(str(max(counts))) - 1) // 5)
    top = max(1, -(-max(counts) // unit)) * unit
    heights = [round(count * _HEIGHT / top, 1) for count in counts]
    names = [f"{date.fromisoformat(day.day):%b %-d}" for day in days]
    return {
        "title": title,
        "total": total,
        "today": counts[-1],
        "before": previous_total,
        "change": f"{round(100 * total / previous_total) - 100:+}%" if previous_total else None,
        "top": top,
        "width": len(days) * _STEP,
        "bars": [
            {"day": day, "count": count, "x": place * _STEP, "y": _HEIGHT - height, "height": height}
            for place, (day, count, height) in enumerate(zip(names, counts, heights, strict=True))
        ],
    }
