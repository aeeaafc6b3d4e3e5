"""Interprets the text of an administrator's search for users."""

import re
from typing import Any

from auth.core import addresses, typed

Filters = dict[str, Any]


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
