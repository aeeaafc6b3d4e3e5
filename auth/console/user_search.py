"""Finding users among a million: by the beginning of an address or id, by filters, a page at a time."""

import re
from datetime import UTC, datetime
from typing import Any, NamedTuple

from psycopg2.errors import QueryCanceled

from auth import addresses
from auth.console.page import counted
from auth.context import latchkey
from auth.web.errors import ApiError
from auth.web.fields import is_uuid
from sql import Transaction

PAGE_SIZE = 25
# Users are counted up to here, and fetched by their ids. If more pass the filters, a walk in the order of the
# list finds a page of them soon enough.
FEW = 1_000
# Seconds for counting and for the list.
_COUNTING, _LISTING = 0.3, 1.0

SIGNED_IN = {
    "day": {"within": "1 day"},
    "week": {"within": "7 days"},
    "month": {"within": "30 days"},
    "not_month": {"not_within": "30 days"},
    "not_quarter": {"not_within": "90 days"},
    "not_year": {"not_within": "1 year"},
    "never": {"not_within": "1000 years"},
}
_DESCENDING = {"newest", "last_sign_in"}
# Readings of a search that the list is sorted by.
_SORTED = {"email", "phone", "id"}
_NEVER = "-infinity"
_PHONE_SEPARATORS = re.compile(r"[ \-.()\[\]]")

Filters = dict[str, Any]


class Found(NamedTuple):
    """A page of users, with the places of the pages before and after it.

    `reading` is how the search was understood, one of `readings`. `pending` are users who have requested
    exactly this address, but not confirmed it.
    """

    users: list[Any]
    pending: list[Any]
    total: str
    reading: str
    readings: list[str]
    is_first: bool
    previous: str | None
    next: str | None


class _Page(NamedTuple):
    rows: list[Any]
    is_first: bool
    is_last: bool


def find(query: dict[str, Any]) -> Found:
    """Return the users that a query asks for. Raises `QueryCanceled` if it takes too long, and `ApiError`."""
    text, filters = query.get("q", "").strip(), _filters(query)
    readings = _readings(text)
    chosen = {query["by"]: readings[query["by"]]} if query.get("by") in readings else readings
    for reading, meant in chosen.items():
        wanted = filters | meant
        among, least = _few(wanted)
        with latchkey.db.transaction() as tx:
            tx.run("bound_search", seconds=_LISTING)
            page = _page(tx, reading if reading in _SORTED else query["sort"], wanted, among, query)
            users = tx.all("describe_users", ids=[row.id for row in page.rows])
        if users:
            break
    address = _whole_address(text) if page.is_first else None
    pending = latchkey.db.all("list_pending_users", address=address) if address else []
    previous = None if page.is_first or not page.rows else _named(page.rows[0])
    following = None if page.is_last else _named(page.rows[-1])
    total = _total(wanted, among, least, page)
    return Found(users, pending, total, reading, list(readings), page.is_first, previous, following)


def _filters(query: dict[str, Any]) -> Filters:
    filters = {name: query[name] for name in ("status", "provider") if query.get(name)}
    if "factor" in query:
        filters["has_factor"] = query["factor"] == "yes"
    return filters | SIGNED_IN.get(query.get("signed_in", ""), {})


def _readings(text: str) -> dict[str, Filters]:
    """Return the possible readings of a search, as filters, in the order in which they are tried."""
    if not text:
        return {"all": {}}
    lower = text.lower()
    number, digits = _PHONE_SEPARATORS.sub("", text), lower.replace("-", "")
    readings: dict[str, Filters] = {}
    if text[0] != "@":
        readings["email"] = {"email": lower}
    if re.fullmatch(r"\+?[0-9]{1,15}", number):
        readings["phone"] = {"phone": "+" + number.removeprefix("+").removeprefix("00")}
    if re.fullmatch(r"[0-9a-f]{1,32}", digits):
        readings["id"] = {"id": digits}
    if "@" not in text[1:] or text[0] == "@":
        readings["domain"] = {"domain": lower.removeprefix("@")}
    return readings


def _whole_address(text: str) -> str | None:
    try:
        return addresses.canonical(text)
    except addresses.InvalidAddress:
        return None


def _few(wanted: Filters) -> tuple[list[str] | None, int]:
    """Return the ids of the users that pass the filters, or None and a number that they exceed."""
    try:
        with latchkey.db.transaction() as tx:
            tx.run("bound_search", seconds=_COUNTING)
            return tx.one("few_users", filters=wanted, few=FEW).ids, FEW
    except QueryCanceled:
        return None, PAGE_SIZE


def _page(
    tx: Transaction, sort: str, wanted: Filters, among: list[str] | None, query: dict[str, Any]
) -> _Page:
    start = {"filters": wanted, "among": among, "sort": sort, "page_size": PAGE_SIZE + 1}
    descending = sort in _DESCENDING
    if "before" in query:
        before = _place(sort, query["before"])
        rows = tx.all("search_users", **start, **before, descending=not descending)
        if len(rows) > PAGE_SIZE:
            return _Page(rows[PAGE_SIZE - 1 :: -1], is_first=False, is_last=False)
    is_first = "after" not in query
    after = {"place": None, "id": None} if is_first else _place(sort, query["after"])
    rows = tx.all("search_users", **start, **after, descending=descending)
    return _Page(rows[:PAGE_SIZE], is_first, len(rows) <= PAGE_SIZE)


def _named(row: Any) -> str:
    return f"{row.place}~{row.id}"


def _place(sort: str, text: str) -> dict[str, str]:
    """Return the parameters for a place in an order. Raises `ApiError`."""
    place, _, user_id = text.rpartition("~")
    if sort in _DESCENDING and place != _NEVER:
        place = _timestamp(place)
    if not place or not is_uuid(user_id) or (sort == "id" and place != user_id):
        raise ApiError("validation_failed", "after, before: must be a place that this list has named")
    return {"place": place, "id": user_id}


def _timestamp(text: str) -> str:
    """Return a time as Postgres reads it, or an empty string. Python accepts forms that Postgres does not."""
    try:
        moment = datetime.fromisoformat(text)
        return moment.astimezone(UTC).isoformat() if moment.tzinfo else ""
    except (ValueError, OverflowError):
        return ""


def _total(wanted: Filters, among: list[str] | None, least: int, page: _Page) -> str:
    """Return the number of users as text: exact up to `FEW`, for all users Postgres's own estimate."""
    if page.is_first and page.is_last:
        return counted(len(page.rows), "user")
    if among is not None:
        return counted(len(among), "user")
    total = 0 if wanted else latchkey.db.one("estimate_users").total
    if total > FEW:
        return f"About {counted(int(float(f'{total:.1e}')), 'user')}"
    return f"More than {counted(least, 'user')}"
