"""The filters of lists, from the query of the URL, and the keys of their pages."""

from typing import Any
from urllib.parse import urlencode

from flask import request
from marshmallow import pre_load

from auth.web import fields
from auth.web.schemas import Input

# Rows of a page. One more is read, to know whether there is a next page.
MOST = 25


class Filters(Input):
    """A form sends its empty fields too."""

    before_at = fields.Timestamp(load_default=None)
    before_id = fields.Uuid(load_default=None)

    @pre_load
    def leave_out_empty(self, data: dict[str, str], **_kwargs: Any) -> dict[str, str]:
        return {name: value.strip() for name, value in data.items() if value.strip()}


def place_of(query: dict[str, Any]) -> dict[str, Any]:
    """Return the page that a query asks for, as parameters of a statement."""
    return {"before_at": query["before_at"], "before_id": query["before_id"], "most": MOST + 1}


def page_of(rows: list[Any], time: str) -> dict[str, Any]:
    """Return a page of rows, and the URLs of the first and the next one. `time` is a member of `details`."""
    last = rows[MOST - 1] if len(rows) > MOST else None
    following = page_after(last.details[time], last.id) if last else None
    return {"rows": rows[:MOST], "first": first_page(), "next": following}


def first_page() -> str | None:
    """Return the URL of a list's first page, unless this is it."""
    return _url({}) if "before_id" in request.args else None


def page_after(at: str, id: str) -> str:
    """Return the URL of the page of a list that continues after a row."""
    return _url({"before_at": at, "before_id": id})


def _url(key: dict[str, str]) -> str:
    kept = {name: value for name, value in request.args.items() if not name.startswith("before_") and value}
    return f"{request.path.rpartition('/')[2]}?{urlencode(kept | key)}"
