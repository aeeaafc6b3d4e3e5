"""Finding users among a million: by the beginning of an address or id, by filters, a page at a time."""

import re
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any, NamedTuple

from psycopg2.errors import QueryCanceled

from auth import addresses
from auth.context import latchkey
from auth.web.errors import ApiError
from auth.web.fields import is_uuid
from sql import Transaction

PAGE_SIZE = 25
# If a filter matches at most this many users, only these are read. Otherwise a walk through all users finds
# matches soon enough.
_FEW = 2_000
# Seconds for a search; fewer at first, if there is another plan.
_LONGEST, _FIRST = 1.0, 0.3
# The size of the sample for an estimate, and the fewest matches in it that are significant.
_SAMPLE, _LEAST_IN_SAMPLE = 1_000, 5

SIGNED_IN = {
    "day": {"within": "1 day"},
    "week": {"within": "7 days"},
    "month": {"within": "30 days"},
    "not_month": {"not_within": "30 days"},
    "not_quarter": {"not_within": "90 days"},
    "not_year": {"not_within": "1 year"},
    "never": {"not_within": "1000 years"},
}
# By the reading of the search, or else by `sort`.
_STATEMENTS = {
    "newest": "list_users_by_age",
    "last_sign_in": "list_users_by_last_sign_in",
    "email": "list_users_by_email",
    "phone": "list_users_by_phone",
    "id": "list_users_by_id",
}
_LAST_ID = "ffffffff-ffff-ffff-ffff-ffffffffffff"
# Where each order begins.
_BEGINNINGS = {
    "newest": {"place": "infinity", "id": _LAST_ID},
    "last_sign_in": {"place": "infinity", "id": _LAST_ID},
    "email": {"place": ""},
    "phone": {"place": ""},
    "id": {"place": "00000000-0000-0000-0000-000000000000"},
}
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
    filters = _filters(query)
    few, both = list(_candidates(filters)), list(_intersections(filters))
    if not both:
        return _find(query, filters, few, _LONGEST)
    try:
        return _find(query, filters, few, _FIRST)
    except QueryCanceled:
        # The filters have many users each, but perhaps few together.
        return _find(query, filters, both, _LONGEST)


def _find(
    query: dict[str, Any], filters: Filters, candidates: list[tuple[str, dict[str, Any]]], longest: float
) -> Found:
    text = query.get("q", "").strip()
    readings = _readings(text)
    chosen = {query["by"]: readings[query["by"]]} if query.get("by") in readings else readings
    with latchkey.db.transaction() as tx:
        tx.run("bound_search", seconds=longest)
        among = _few(tx, candidates)
        for reading, meant in chosen.items():
            wanted = filters | meant
            page = _page(tx, reading if reading in _STATEMENTS else query["sort"], wanted, among, query)
            if page.rows:
                break
        users = tx.all("describe_users", ids=[row.id for row in page.rows])
        address = _whole_address(text) if page.is_first else None
        pending = tx.all("list_pending_users", address=address) if address else []
    previous = None if page.is_first or not page.rows else _named(page.rows[0])
    following = None if page.is_last else _named(page.rows[-1])
    total = _total(wanted, among, page)
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


def _few(tx: Transaction, candidates: list[tuple[str, dict[str, Any]]]) -> list[str] | None:
    """Return the users that one of the candidates finds, if they are few."""
    for statement, parameters in candidates:
        if (ids := tx.one(statement, **parameters, few=_FEW).ids) is not None:
            return ids
    return None


def _candidates(filters: Filters) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield a statement for each filter without an index on `users`."""
    if "provider" in filters:
        yield "few_users_of_provider", {"provider": filters["provider"]}
    if filters.get("has_factor"):
        yield "few_users_with_factor", {}
    if bounds := _bounds(filters):
        yield "few_users_by_sign_in", bounds


def _intersections(filters: Filters) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield a statement for each two of these filters, which joins their indexes."""
    provider, has_factor, bounds = filters.get("provider"), filters.get("has_factor"), _bounds(filters)
    if provider and bounds:
        yield "few_users_of_provider_by_sign_in", {"provider": provider, **bounds}
    if provider and has_factor:
        yield "few_users_of_provider_with_factor", {"provider": provider}
    if has_factor and bounds:
        yield "few_users_with_factor_by_sign_in", bounds


def _bounds(filters: Filters) -> dict[str, Any]:
    names = ("within", "not_within")
    return {name: filters.get(name) for name in names} if filters.keys() & set(names) else {}


def _page(
    tx: Transaction, order: str, wanted: Filters, among: list[str] | None, query: dict[str, Any]
) -> _Page:
    statement = _STATEMENTS[order]
    start = {"filters": wanted, "among": among, "page_size": PAGE_SIZE + 1, "backward": False}
    if "before" in query:
        before = start | _place(order, query["before"]) | {"backward": True}
        rows = tx.all(statement, **before)
        if len(rows) > PAGE_SIZE:
            return _Page(rows[PAGE_SIZE - 1 :: -1], is_first=False, is_last=False)
    is_first = "after" not in query
    rows = tx.all(statement, **start, **(_BEGINNINGS[order] if is_first else _place(order, query["after"])))
    return _Page(rows[:PAGE_SIZE], is_first, len(rows) <= PAGE_SIZE)


def _named(row: Any) -> str:
    return f"{row.place}~{row.id}"


def _place(order: str, text: str) -> dict[str, str]:
    """Return the parameters for a place in an order. Raises `ApiError`."""
    place, _, user_id = text.rpartition("~")
    if order in ("newest", "last_sign_in") and place != _NEVER:
        place = _timestamp(place)
    if not place or not is_uuid(user_id) or (order == "id" and place != user_id):
        raise ApiError("validation_failed", "after, before: must be a place that this list has named")
    return {name: value for name, value in (("place", place), ("id", user_id)) if name in _BEGINNINGS[order]}


def _timestamp(text: str) -> str:
    """Return a time as Postgres reads it, or an empty string. Python accepts forms that Postgres does not."""
    try:
        moment = datetime.fromisoformat(text)
        return moment.astimezone(UTC).isoformat() if moment.tzinfo else ""
    except (ValueError, OverflowError):
        return ""


def _total(wanted: Filters, among: list[str] | None, page: _Page) -> str:
    """Return the number of users as text: exact if that is cheap, otherwise an estimate marked as one."""
    if page.is_first and page.is_last:
        return _users(len(page.rows))
    try:
        with latchkey.db.transaction() as tx:
            tx.run("bound_search", seconds=_LONGEST)
            return _estimate(tx, wanted, among)
    except QueryCanceled:
        return f"More than {_users(PAGE_SIZE)}"


def _estimate(tx: Transaction, wanted: Filters, among: list[str] | None) -> str:
    total = tx.one("estimate_users").total
    if among is not None or total <= _FEW:
        return _users(tx.one("count_filtered_users", filters=wanted, among=among).total)
    if not wanted:
        return f"About {_users(_rounded(total))}"
    sample = [row.id for row in tx.all("sample_users", percent=min(100, 100 * _SAMPLE / total))]
    admitted = tx.one("count_filtered_users", filters=wanted, among=sample).total
    if admitted < _LEAST_IN_SAMPLE:
        return f"More than {_users(PAGE_SIZE)}"
    return f"About {_users(_rounded(total * admitted / len(sample)))}"


def _rounded(number: float) -> int:
    """Round to two digits."""
    return int(float(f"{number:.1e}"))


def _users(number: int) -> str:
    return f"{number:,} user{'' if number == 1 else 's'}"
