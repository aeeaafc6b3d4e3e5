"""Administrators' searches for users."""

import re
from typing import Any

from auth.core import addresses, typed
from sql import Database, queries

Filters = dict[str, Any]
# Of a thousand users. If so many match, reading users until a page is full is faster than collecting all
# that the index of words finds.
_MANY = 10


def list_users(
    db: Database, filters: Filters, *, most: int, **order: Any
) -> "queries.ListUsers | queries.FindUsers":
    """Return a page of the users that match, as JSON, and their total, which ends at `most` if many match."""
    with db.transaction() as tx:
        queries.plan_with_values(tx)
        q, is_by_age = filters["q"], order["sort"] == "created_at"
        if q is None or (is_by_age and queries.sample_users(tx, q=q).found >= _MANY):
            return queries.list_users(tx, **filters, **order, most=most)
        return queries.find_users(tx, **filters, **order)


def count_users(db: Database, filters: Filters) -> int:
    """Return how many users match."""
    nobody: dict[str, Any] = {"sort": "created_at", "descending": True, "page_size": 0, "page_offset": 0}
    with db.transaction() as tx:
        queries.plan_with_values(tx)
        if filters["q"] is None:
            return queries.list_users(tx, **filters, **nobody, most=None).total
        return queries.find_users(tx, **filters, **nobody).total


def readings(text: str) -> dict[str, Filters]:
    """Return the possible readings of a search, as filters, in the order to try them."""
    text = typed.trimmed(text)
    if not text:
        return {"all": {}}
    lower = text.lower()
    if text[0] == "@":
        return {"domain": {"domain": lower.removeprefix("@")}}
    number, digits = addresses.joined(typed.number(text)), lower.replace("-", "")
    found: dict[str, Filters] = {"email": {"email": lower}} if "@" in text else {}
    phone: Filters = {"phone": _in_e_164("+" + number.removeprefix("+").removeprefix("00"))}
    if re.fullmatch(r"\+[0-9]{1,15}", number):
        found["phone"] = phone
    found["words"] = {"words": text}
    if re.fullmatch(r"[0-9]{1,15}", number):
        found["phone"] = phone
    if re.fullmatch(r"[0-9a-f]{1,32}", digits):
        found["id"] = {"id": digits}
    return found


def _in_e_164(number: str) -> str:
    try:
        return addresses.canonical_phone(number)
    except addresses.InvalidAddress:
        return number
