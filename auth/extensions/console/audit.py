"""The audit log, newest first."""

from typing import Any

from flask import Blueprint, Response

from auth.core.text.labels import label, names
from auth.flows.history.entries import first_of, organizations_called
from auth.html.admin import entries
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
_NO_USER = "No user has the address {}. Find deleted users by ID, or by the action “user deleted”."
_NO_ORGANIZATION = "No organization has the short name or name {}. Find organizations that have ended by ID."
_SEVERAL = "Several organizations are called {}."


class _EntriesQuery(ListQuery):
    user = fields.Text()
    by = fields.Text()
    action = fields.Text(load_default=None)
    organization = fields.Text(load_default=None)
    since = fields.Minute(load_default=None)
    until = fields.Minute(load_default=None)
    request_id = fields.Text(load_default=None)


@blueprint.get("/console/audit")
@administrator
def show_audit() -> Response:
    query = read_query(_EntriesQuery)
    try:
        result = _search(query)
    except _UnknownAddress as error:
        result = {"rows": [], "unknown": _NO_USER.format(error)}
    except _UnknownOrganization as error:
        why = _SEVERAL if error.namesakes else _NO_ORGANIZATION
        unknown = why.format(query["organization"])
        result = {"rows": [], "unknown": unknown, "namesakes": error.namesakes}
    titles = {
        row.action: label("refused" if row.action.endswith("_refused") else "acts", row.action)
        for row in queries.list_audit_actions(latchkey.db)
    }
    actions = sorted(titles.items(), key=lambda pair: pair[1])
    return console_page("audit.html", actions=actions, first=first_page(), **result)


class _UnknownAddress(Exception):
    """No user has the address of a filter."""


class _UnknownOrganization(Exception):
    """No organization has the name of a filter, or several `namesakes` have it."""

    def __init__(self, namesakes: "list[queries.ListOrganizationsCalled]") -> None:
        super().__init__()
        self.namesakes = namesakes


def _search(query: dict[str, Any]) -> dict[str, Any]:
    """Return the entries, the URL of the next page and, if the search gave up early, the time it reached."""
    place = {name: query[name] for name in ("since", "until", "before_at", "before_id")}
    filters = {
        "subject": _id_of(query.get("user")),
        "done_by": query["by"] if query.get("by") in names("actors") else _id_of(query.get("by")),
        "action": query["action"],
        "organization": _organization_of(query["organization"]),
    }
    values = filters | {"request_id": query["request_id"]}
    first = first_of(values)
    rows = queries.search_audit(latchkey.db, **first, **filters, **place, reach=REACH, most=MOST + 1)
    is_whole = bool(query["request_id"] or query["action"])
    visible = [row for row in rows[:MOST] if is_whole or not _is_of_invitation(row)]
    organization = filters["organization"]
    result = {"rows": entries.for_page(visible, is_whole=is_whole, organization=organization)}
    if len(rows) > MOST:
        return result | {"next": page_after(rows[MOST - 1].at, rows[MOST - 1].id)}
    last = queries.select_reach_of_audit(latchkey.db, **first, **place, reach=REACH)
    reach = {"next": page_after(last.at, last.id), "searched_until": last.at} if last else {}
    return result | reach


def _is_of_invitation(row: "queries.SearchAudit") -> bool:
    """Whether an entry repeats that of an invitation."""
    return row.name == "user_created" and row.details.get("by") == "invitation"


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


def _organization_of(text: str | None) -> str | None:
    """Return the id of an organization with a short name or a name, if a filter has one.

    Accepts any id, even of a deleted organization. Raises `_UnknownOrganization`.
    """
    if text is None or is_uuid(text):
        return text and text.lower()
    rows = organizations_called(latchkey.db, text)
    if len(rows) != 1:
        raise _UnknownOrganization(rows)
    return rows[0].id
