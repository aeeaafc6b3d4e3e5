"""Administrators' searches for users."""

import re
from contextlib import suppress
from typing import Any, TypedDict, Unpack

from auth.core import addresses, normalize
from sql import Database, queries

Filters = dict[str, Any]
# If so many of a thousand users match, reading users until a page is full is faster than collecting all that
# the index of words finds.
_MANY = 10


class Order(TypedDict):
    sort: str
    descending: bool
    page_size: int
    page_offset: int


def list_users(
    db: Database,
    filters: Filters,
    *,
    most: int,
    **order: Unpack[Order],
) -> "queries.ListUsers | queries.FindUsers":
    """Return a page of the users that match, as JSON, and their total, which ends at `most` if many match."""
    with db.search() as tx:
        q, is_by_age = filters["q"], order["sort"] == "created_at"
        if q is None or (is_by_age and queries.sample_users(tx, q=q).total >= _MANY):
            return queries.list_users(tx, **filters, **order, most=most)
        return queries.find_users(tx, **filters, **order)


def count_users(db: Database, values: tuple[tuple[str, object], ...]) -> int:
    """Count the users that match the filters with these values."""
    filters: Filters = dict(values)
    none_shown: Order = {"sort": "created_at", "descending": True, "page_size": 0, "page_offset": 0}
    with db.search() as tx:
        if filters["q"] is None:
            return queries.list_users(tx, **filters, **none_shown, most=None).total
        return queries.find_users(tx, **filters, **none_shown).total


def readings(text: str) -> dict[str, Filters]:
    """Return the possible readings of a search, as filters, in the order to try them."""
    text = normalize.trimmed(text)
    if not text:
        return {"all": {}}
    lower = text.lower()
    if text[0] == "@":
        return {"domain": {"domain": lower.removeprefix("@")}}
    number, digits = addresses.joined(normalize.number(text)), lower.replace("-", "")
    filters: dict[str, Filters] = {"email": {"email": lower}} if "@" in text else {}
    in_e_164 = "+" + number.removeprefix("+").removeprefix("00")
    with suppress(addresses.InvalidAddress):
        in_e_164 = addresses.canonical_phone(in_e_164)
    phone: Filters = {"phone": in_e_164}
    if re.fullmatch(r"\+[0-9]{1,15}", number):
        filters["phone"] = phone
    filters["words"] = {"words": text}
    if re.fullmatch(r"[0-9]{1,15}", number):
        filters["phone"] = phone
    if re.fullmatch(r"[0-9a-f]{1,32}", digits):
        filters["id"] = {"id": digits}
    return filters
