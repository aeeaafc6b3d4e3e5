"""The audit log, newest first."""

from datetime import UTC, datetime
from typing import Any

from flask import Blueprint, Response

from auth.core.text.labels import details, label, names
from auth.flows.history import timeline
from auth.html.admin.access import administrator
from auth.html.admin.console_page import (
    MOST,
    ListQuery,
    console_page,
    first_page,
    page_after,
    whole_address,
)
from auth.web import fields
from auth.web.context import latchkey
from auth.web.fields import is_uuid
from auth.web.input import read_query
from sql import queries

blueprint = Blueprint("audit", __name__)

# Rows that one page may read.
REACH = 2000
# The filters that have an index, the most selective first.
_INDEXED = ("request_id", "subject", "done_by", "action")


class _EntriesQuery(ListQuery):
    user = fields.Text()
    by = fields.Text()
    action = fields.Text(load_default=None)
    since = fields.Minute(load_default=None)
    until = fields.Minute(load_default=None)
    request_id = fields.Text(load_default=None)


@blueprint.get("/console/audit")
@administrator
def show_audit() -> Response:
    try:
        result = _search(read_query(_EntriesQuery))
    except _UnknownAddress as error:
        result = {"rows": [], "unknown": str(error)}
    titles = {
        row.action: label("refused" if row.action.endswith("_refused") else "acts", row.action)
        for row in queries.list_audit_actions(latchkey.db)
    }
    actions = sorted(titles.items(), key=lambda pair: pair[1])
    return console_page("audit.html", actions=actions, first=first_page(), **result)


class _UnknownAddress(Exception):
    """No user has the address of a filter."""


def _search(query: dict[str, Any]) -> dict[str, Any]:
    """Return the entries, the URL of the next page and, if the search gave up early, the time it reached."""
    place = {name: query[name] for name in ("since", "until", "before_at", "before_id")}
    filters = {
        "subject": _id_of(query.get("user")),
        "done_by": query["by"] if query.get("by") in names("actors") else _id_of(query.get("by")),
        "action": query["action"],
    }
    values = filters | {"request_id": query["request_id"]}
    index = next((name for name in _INDEXED if values[name]), None)
    first = {f"first_{name}": values[name] if name == index else None for name in _INDEXED}
    rows = queries.search_audit(latchkey.db, **first, **filters, **place, reach=REACH, most=MOST + 1)
    is_whole = bool(query["request_id"] or query["action"])
    entries = [
        _entry(row, is_whole=is_whole) for row in rows[:MOST] if is_whole or not _is_of_invitation(row)
    ]
    if len(rows) > MOST:
        return {"rows": entries, "next": page_after(rows[MOST - 1].at, rows[MOST - 1].id)}
    last = queries.select_reach_of_audit(latchkey.db, **first, **place, reach=REACH)
    reach = {"next": page_after(last.at, last.id), "searched_until": last.at} if last else {}
    return {"rows": entries, **reach}


def _is_of_invitation(row: "queries.SearchAudit") -> bool:
    """Whether an entry repeats that of an invitation."""
    return row.name == "user_created" and row.details.get("by") == "invitation"


def _entry(row: "queries.SearchAudit", *, is_whole: bool) -> dict[str, Any]:
    """Return an entry for the list: without IDs, which only a list of one request or action shows."""
    text = timeline.what(row)
    key = timeline.key_of(row)
    omitted = {"administrator"} if key else set[str]()
    if row.request_id and not is_whole:
        omitted |= {name for name in row.details if name == "id" or name.endswith("_id")}
        omitted |= {"by"} if row.name == "invited" else set()
    members = row.details | dict.fromkeys(omitted)
    moment = datetime.fromisoformat(row.at).astimezone(UTC)
    is_of_year = moment.year == datetime.now(UTC).year
    return row._asdict() | {
        "text": text,
        "details": details(members, line=f"{text} {row.actor_address}"),
        "key": key,
        "time": f"{moment:%b %-d, %H:%M:%S}" if is_of_year else f"{moment:%Y-%m-%d %H:%M:%S}",
    }


def _id_of(text: str | None) -> str | None:
    """Return the id of the user with an address, if a filter has one.

    Accepts any id, even of a deleted user. Raises `_UnknownAddress`.
    """
    if text is None:
        return None
    if is_uuid(text):
        return text.lower()
    address = whole_address(text)
    owner = address and queries.select_user_of_address(latchkey.db, address=address)
    if not owner:
        raise _UnknownAddress(text)
    return owner.id
