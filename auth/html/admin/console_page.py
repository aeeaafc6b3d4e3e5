"""Common code of the console's sections: layout, filters, pagination, and wording."""

import json
from collections.abc import Mapping
from itertools import chain
from typing import Any
from urllib.parse import urlencode

from flask import Response, request
from marshmallow import pre_load

from auth.core import addresses, normalize
from auth.core.text import user_agents
from auth.core.text.labels import label
from auth.html.page import application, page
from auth.web import fields, g
from auth.web.context import latchkey
from auth.web.schemas import Input

# Rows of a page. One more is read to find out whether there is a next page.
MOST = 25


def console_page(template: str, *, status: int = 200, **values: Any) -> Response:
    """Render a page of the console, in the section of its path.

    Templates extend `console/layout.html` and import the macros of `console/parts.html`.
    """
    common = {
        "section": "/".join(request.path.split("/")[1:3]),
        "navigation": sorted(chain.from_iterable(each.navigation for each in latchkey.extensions)),
        "administrator": g.administrator,
        "here": request.path,
        "label": label,
        "problem": None,
    }
    return page(f"console/{template}", status=status, script=True, **common | values)


class ListQuery(Input):
    """The filters of a list, from the query. A form sends its empty fields too."""

    before_at = fields.Timestamp(load_default=None)
    before_id = fields.Uuid(load_default=None)

    @pre_load
    def leave_out_empty(self, data: dict[str, str], **_kwargs: object) -> dict[str, str]:
        return {name: text for name, value in data.items() if (text := normalize.trimmed(value))}


def place_of(query: dict[str, Any]) -> dict[str, Any]:
    """Return the page of a query, as parameters of a statement."""
    return {"before_at": query["before_at"], "before_id": query["before_id"], "most": MOST + 1}


def page_of(rows: list[Any], time: str) -> dict[str, Any]:
    """Return a page of rows, and the URLs of the first and the next one. `time` is a member of `details`."""
    last = rows[MOST - 1] if len(rows) > MOST else None
    next_url = page_after(last.details[time], last.id) if last else None
    return {"rows": rows[:MOST], "first": first_page(), "next": next_url}


def first_page() -> str | None:
    """Return the URL of a list's first page, unless this is it."""
    return _url({}) if "before_id" in request.args else None


def page_after(at: str, id: str, **others: str) -> str:
    """Return the URL of the page of a list that continues after a row."""
    return _url({"before_at": at, "before_id": id} | others)


def _url(key: dict[str, str]) -> str:
    filters = {
        name: value for name, value in request.args.items() if not name.startswith("before_") and value
    }
    return f"{request.path.rpartition('/')[2]}?{urlencode(filters | key)}"


def whole_address(text: str) -> str | None:
    """Return the stored form of a search that is a whole email or phone."""
    try:
        return addresses.canonical_typed(text)
    except addresses.InvalidAddress:
        return None


def client_name(name: str) -> str:
    """Return the name of an application for texts. In templates, use `application`."""
    return application(name).striptags()


def pretty(members: Mapping[str, object]) -> str:
    return json.dumps(members, indent=2, ensure_ascii=False)


def device(user_agent: str | None) -> str:
    return user_agents.device(user_agent) or "Unknown device"
