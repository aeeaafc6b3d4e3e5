"""The users of a list as CSV."""

import csv
import re
from collections.abc import Iterator
from io import StringIO
from typing import Any

from flask import Blueprint, Response, request, stream_with_context

from auth.console.acts import Act, Subject, serve
from auth.console.users import Filters, Query, matching
from auth.web import targets
from auth.web.input import read_form, read_query

blueprint = Blueprint("export", __name__)

_PAGE = 1_000
# Seconds for counting, and for each page.
_LONGEST = 10.0
_COLUMNS = (
    *("id", "email", "phone", "name", "role", "is_anonymous", "is_confirmed", "is_banned", "has_factor"),
    *("providers", "created_at", "last_sign_in_at"),
)
# Spreadsheets run cells that begin so. Where the comma is the decimal sign, a semicolon begins a cell, even
# between quotes. A phone number only looks like a formula.
_FORMULA = re.compile(r'(^|[;\r\n])(?="?[=+\-@\t\r])')
_PHONE = re.compile(r"\+[0-9]+")


def _list() -> Subject:
    query = read_form(Query()) if request.method == "POST" else read_query(Query())
    query = {name: value for name, value in query.items() if value and name != "sort"}
    return Subject("Users", "console/users", matching(query), query)


def _export(users: Subject, _form: dict[str, Any]) -> Response:
    with targets.act() as tx:
        tx.run("bound_search", seconds=_LONGEST, in_order=False)
        tx.run("record_export", filters=users.row)
    headers = {"Content-Disposition": 'attachment; filename="users.csv"'}
    return Response(stream_with_context(_pages(users.row)), mimetype="text/csv", headers=headers)


def _pages(filters: Filters) -> Iterator[str]:
    """Yield the lines. The download fails if the caller has been demoted or signed out meanwhile."""
    yield _lines([_COLUMNS])
    after = None
    while True:
        with targets.act() as tx:
            tx.run("bound_search", seconds=_LONGEST, in_order=False)
            ids = [row.id for row in tx.all("list_user_ids", filters=filters, after=after, most=_PAGE)]
            rows = tx.all("describe_users", ids=ids)
        if not ids:
            return
        yield _lines([[_cell(getattr(row, name)) for name in _COLUMNS] for row in rows])
        after = ids[-1]


def _lines(rows: list[Any]) -> str:
    text = StringIO()
    csv.writer(text).writerows(rows)
    return text.getvalue()


def _cell(value: Any) -> str:
    text = " ".join(value) if isinstance(value, list) else "" if value is None else str(value)
    return text if _PHONE.fullmatch(text) else _FORMULA.sub(r"\1'", text)


_ACTS = {
    "export": Act(
        title="Export as CSV",
        effects=lambda users: [
            "Downloads all users that match the filters." if users.hidden else "Downloads all users.",
            "Passwords and metadata are left out. For these, use latchkey users export.",
        ],
        undo="The audit log records the export.",
        do=_export,
        done="",
        is_download=True,
    )
}

serve(blueprint, "/console/users", _ACTS, _list)
