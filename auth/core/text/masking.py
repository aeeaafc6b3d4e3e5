"""Masks addresses so that only their owners recognise them."""

import re


def masked(address: str) -> str:
    """Return a masked address for a page that asked for the address, or proved it: `a…@example.com`, or
    `…123`."""
    name, at, domain = address.rpartition("@")
    return f"{name[:1]}…@{domain}" if at else f"…{address[-3:]}"


def masked_email(address: object) -> str | None:
    """Return a masked email for a message, where it must not look like a link: `b***@e***.com`."""
    if not isinstance(address, str) or "@" not in address:
        return None
    local, _, domain = address.rpartition("@")
    top = domain.rpartition(".")[2]
    return f"{_initial(local)}***@{_initial(domain)}***.{top if top.isalpha() and top.isascii() else '***'}"


def masked_phone(number: object) -> str | None:
    """Return the last three digits of a phone number, for a message that explains them."""
    return number[-3:] if isinstance(number, str) and re.fullmatch(r"\+[0-9]{7,15}", number) else None


def _initial(text: str) -> str:
    return text[0] if text[:1].isascii() and text[:1].isalnum() else "*"
