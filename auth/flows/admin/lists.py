"""Lists of users as CSV, and lists of addresses to invite."""

import csv
import re
from collections.abc import Iterable, Iterator
from io import StringIO
from itertools import chain

from auth.core import addresses, normalize
from auth.core.text import labels
from auth.flows import failure_counts
from auth.flows.admin import targets
from auth.flows.admin.searches import Filters
from auth.web.asked import Asked
from auth.web.errors import ApiError
from sql import queries

MOST_EMAILS = 500
_PAGE = 1_000
# Seconds for counting, and for each page.
_LONGEST = 10.0
_COLUMNS = (
    "id", "email", "phone", "name", "role", "is_anonymous", "is_confirmed", "is_banned", "has_factor",
    "providers", "created_at", "last_sign_in_at",
)  # fmt: skip
# Spreadsheets run cells that begin with these signs, some of them after blanks or invisible characters. Where
# the comma is the decimal sign, a semicolon begins a cell, even between quotes; LibreOffice also offers the
# tab. Full-width signs work like those of ASCII. A phone number only looks like a formula.
_BLANK = r"(?:[^\S\t\r\n]|[\xad\u061c\u180e\u200b-\u200f\u202a-\u202e\u2060-\u206f\ufeff])*+"
_FORMULA = re.compile(rf'(^|[;\t\r\n])(?={_BLANK}"?{_BLANK}[=+\-@\t\r\uff1d\uff0b\uff0d\uff20])')
_PHONE = re.compile(r"\+[0-9]+")
# Control characters, which a terminal would interpret.
_CONTROLS = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f]")


def export(asked: Asked, filters: Filters) -> Iterator[str]:
    """Record an export, and return its pieces. They fail once the caller is demoted or signed out."""
    with targets.begin(asked) as act:
        queries.bound_search(act, seconds=_LONGEST, in_order=False)
        queries.record_export(act, filters=filters)
    tables = (
        [[_cell(getattr(row, name)) for name in _COLUMNS] for row in rows] for rows in pages(asked, filters)
    )
    return chain([_lines([_COLUMNS])], map(_lines, tables))


def pages(asked: Asked, filters: Filters) -> Iterator[list["queries.DescribeUsers"]]:
    """Yield the matching users, as `describe_users` returns them."""
    after = None
    while True:
        with targets.begin(asked) as act:
            queries.bound_search(act, seconds=_LONGEST, in_order=False)
            ids = [row.id for row in queries.list_user_ids(act, filters=filters, after=after, most=_PAGE)]
            rows = queries.describe_users(act, ids=ids, locks=failure_counts.locks(asked.settings))
        if not ids:
            return
        yield rows
        after = ids[-1]


def emails_in(text: str) -> list[str]:
    """Return the addresses in a text, in canonical form."""
    texts = list(filter(normalize.trimmed, re.split(r"[\s,;]+", text))) or [""]
    if len(texts) > MOST_EMAILS:
        raise ApiError("validation_failed", f"emails: must be at most {MOST_EMAILS} addresses")
    emails, wrong = list[str](), list[str]()
    for each in texts:
        try:
            emails.append(addresses.canonical_typed_email(each))
        except addresses.InvalidAddress:
            wrong.append(each)
    if wrong:
        some = ", ".join(wrong[:3])
        details = f"emails: must be email addresses, not {some}"
        raise ApiError("validation_failed", details, rule="emails", field="emails", wrong=labels.quoted(some))
    return [*dict.fromkeys(emails)]


def _lines(rows: Iterable[Iterable[object]]) -> str:
    text = StringIO()
    csv.writer(text).writerows(rows)
    return text.getvalue()


def _cell(value: object) -> str:
    text = " ".join(value) if isinstance(value, list) else "" if value is None else str(value)
    return text if _PHONE.fullmatch(text) else _FORMULA.sub(r"\1'", _CONTROLS.sub(" ", text))
