"""Finding users among a million: by words, by the start of an address or ID, and by filters."""

from collections.abc import Callable
from itertools import chain
from typing import Any

from flask import Blueprint, Response
from psycopg2.errors import QueryCanceled

from auth.core.text.labels import counted
from auth.flows import failure_counts
from auth.flows.admin import searches
from auth.flows.admin.searches import Filters
from auth.flows.history.mentions import mentions_of
from auth.html.admin.access import administrator
from auth.html.admin.console_page import console_page, whole_address
from auth.html.page import provider
from auth.web import fields
from auth.web.context import latchkey
from auth.web.errors import ApiError
from auth.web.fields import is_uuid
from auth.web.input import check, read_query
from auth.web.schemas import Input
from sql import queries

blueprint = Blueprint("console_users", __name__)

PAGE_SIZE = 25
# Up to this number, matches are counted and fetched by their ids. If there are more, a scan in list order
# finds a page of them quickly.
FEW = 500
# Seconds for counting and for the list.
_COUNTING, _LISTING = 0.3, 1.0

# The offered filters; "" matches all users.
_STATUSES = {
    "": "Status: any",
    "locked": "Locked",
    "banned": "Banned",
    "invited": "Invited",
    "unconfirmed": "Not confirmed",
    "anonymous": "Anonymous",
    "administrator": "Administrators",
}
_FACTORS = {"": "Two-step: any", "yes": "With two-step", "no": "Without two-step"}
_SIGNED_IN: dict[str, tuple[str, Filters]] = {
    "": ("Last sign-in: any", {}),
    "day": ("In the last day", {"within": "1 day"}),
    "week": ("In the last week", {"within": "7 days"}),
    "month": ("In the last 30 days", {"within": "30 days"}),
    "not_month": ("Not in the last 30 days", {"not_within": "30 days"}),
    "not_quarter": ("Not in the last 90 days", {"not_within": "90 days"}),
    "not_year": ("Not in the last year", {"not_within": "1 year"}),
    "never": ("Never", {"not_within": "1000 years"}),
}
_SORTS = {"newest": "Newest first", "last_sign_in": "Last sign-in first"}
_READINGS = {
    "words": "names and emails",
    "email": "emails",
    "phone": "phone numbers",
    "id": "IDs",
    "domain": "domains",
}
# Readings of a search that determine the order of the list, because their index finds the users.
_SORTED = {"email", "phone", "id"}
_NEVER = "-infinity"

Query = Input.of(
    **{name: fields.Text() for name in ("q", "provider", "after", "at")},
    by=fields.Choice("", "all", *_READINGS),
    status=fields.Choice(*_STATUSES),
    factor=fields.Choice(*_FACTORS),
    signed_in=fields.Choice(*_SIGNED_IN),
    sort=fields.Choice(*_SORTS, load_default="newest"),
)
# A place in the order by a time. Python reads formats that Postgres does not.
_Place = Input.of(after=fields.Timestamp())


@blueprint.get("/console/users")
@administrator
def show_users() -> Response:
    query = {name: value for name, value in read_query(Query).items() if value}
    if query.get("by") == "all":
        del query["by"]
    providers = {name: provider(name)["title"] for name in sorted(latchkey.settings.providers)}
    choices = {
        "status": _STATUSES,
        "provider": {"": "Provider: any", "email": "Email", "phone": "Phone", **providers},
        "factor": _FACTORS,
        "signed_in": {name: title for name, (title, _filter) in _SIGNED_IN.items()},
        "sort": _SORTS,
    }
    values: dict[str, Any] = {"query": query, "choices": choices, "readings": _READINGS}
    chosen = query.get("provider")
    try:
        result = _find(query)
    except QueryCanceled:
        return console_page("users.html", status=422, found=None, **values)
    methods = chain.from_iterable(user.providers for user in result["users"])
    mentions = mentions_of(latchkey.db, methods=[*methods, chosen])
    if customer := mentions.provider(chosen):
        choices["provider"] = {**choices["provider"], chosen or "": customer.text}
    return console_page("users.html", found=result, provider=provider, mentions=mentions, **values)


def _find(query: dict[str, str]) -> dict[str, Any]:
    """Return a page of users, with the place of the next one, and their total.

    `reading`, one of `readings`, is how the search was understood, and `filters` is the query of the first
    page with it. `pending` are users who requested exactly this address but have not confirmed it. Raises
    `QueryCanceled` if it takes too long.
    """
    text, filters, is_first = query.get("q", ""), _filters(query), "after" not in query
    readings = searches.readings(text)
    for reading, words in _chosen_readings(query).items():
        criteria = filters | _split(words)
        total = queries.estimate_users(latchkey.db).total if not criteria else 0
        # The number of all users is an estimate. Users with common words are too many to collect.
        is_many = total > FEW or criteria.keys() == {"common"}
        among, least = (None, PAGE_SIZE) if is_many else find_few(criteria)
        order = reading if reading in _SORTED else "last_sign_in" if "within" in criteria else query["sort"]
        rows, is_last = _page(order, criteria, among, query.get("after"))
        if rows:
            break
    locks = failure_counts.locks(latchkey.settings)
    users = queries.describe_users(latchkey.db, ids=[row.id for row in rows], locks=locks)
    address = whole_address(text) if is_first else None
    count = None if among is None else len(among)
    if is_first and is_last:
        count = len(rows)
    shown_total = _estimate(total, least) if count is None else counted(count, "user")
    # Only for display: the place after which the page begins has no number.
    offset = int(query["at"][:9]) if query.get("at", "").isdecimal() and not is_first else 0
    return {
        "users": users,
        "pending": queries.list_pending_users(latchkey.db, address=address) if address else [],
        "count": count,
        "total": shown_total,
        "first": offset + 1,
        "last": offset + len(rows),
        "reading": reading,
        "filters": {
            name: text for name, text in (query | {"by": reading}).items() if name not in ("after", "at")
        },
        "is_sorted": reading in _SORTED or "within" in criteria,
        "readings": list(readings),
        "is_first": is_first,
        "next": None if is_last else f"{rows[-1].place}~{rows[-1].id}",
    }


def matching(query: dict[str, str]) -> Filters:
    """Return the filters of a shown list. `by` is the reading of its search."""
    return _filters(query) | next(iter(_chosen_readings(query).values()))


def _chosen_readings(query: dict[str, str]) -> dict[str, Filters]:
    readings = searches.readings(query.get("q", ""))
    return {query["by"]: readings[query["by"]]} if query.get("by") in readings else readings


def _filters(query: dict[str, str]) -> Filters:
    filters: Filters = {name: query[name] for name in ("status", "provider") if query.get(name)}
    if query.get("status") == "locked":
        filters["locks"] = failure_counts.locks(latchkey.settings)
    if "factor" in query:
        filters["has_factor"] = query["factor"] == "yes"
    return filters | _SIGNED_IN[query.get("signed_in", "")][1]


def _split(reading: Filters) -> Filters:
    """Return a reading that does not look up common words in the index."""
    if "words" not in reading:
        return reading
    row = queries.split_words(latchkey.db, search=reading["words"])
    words = {name: text for name, text in (("words", row.rare), ("common", row.common)) if text}
    return words or reading


def find_few(filters: Filters) -> tuple[list[str] | None, int]:
    """Return the ids of the users that match the filters, or None and a lower bound of their number."""
    if "provider" in filters:
        query: Callable[..., Any] = queries.few_users_of_provider
    elif filters.get("has_factor"):
        query = queries.few_users_with_factor
    elif "locks" in filters:
        query = queries.few_locked_users
    elif filters.keys() & {"within", "not_within"}:
        query = queries.few_users_by_sign_in
    else:
        query = queries.few_users
    try:
        with latchkey.db.transaction() as tx:
            queries.bound_search(tx, seconds=_COUNTING, in_order=False)
            return query(tx, filters=filters, few=FEW).ids, FEW
    except QueryCanceled:
        return None, PAGE_SIZE


def _page(
    sort: str, filters: Filters, among: list[str] | None, after: str | None
) -> tuple[list["queries.SearchUsers"], bool]:
    """Return the rows of a page, and whether it is the last one. Raises `QueryCanceled`."""
    if among == []:
        return [], True
    place: dict[str, Any] = {"place": None, "id": None} if after is None else _place(sort, after)
    with latchkey.db.transaction() as tx:
        queries.bound_search(tx, seconds=_LISTING, in_order=among is None)
        rows = queries.search_users(
            tx, filters=filters, among=among, sort=sort, page_size=PAGE_SIZE + 1, **place
        )
    return rows[:PAGE_SIZE], len(rows) <= PAGE_SIZE


def _place(sort: str, text: str) -> dict[str, str]:
    place, _, user_id = text.rpartition("~")
    if sort in _SORTS and place != _NEVER:
        place = check(_Place, {"after": place})["after"].isoformat()
    if not place or not is_uuid(user_id) or (sort == "id" and place != user_id):
        raise ApiError("validation_failed", "after: must be a place from this list")
    return {"place": place, "id": user_id}


def _estimate(total: int, least: int) -> str:
    if total > FEW:
        return f"About {counted(int(float(f'{total:.1e}')), 'user')}"
    return f"More than {counted(least, 'user')}"
