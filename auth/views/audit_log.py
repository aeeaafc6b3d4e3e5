"""/admin/audit: who has done what to whom, and from where; and the timeline of one user."""

from flask import Blueprint, Response, json

from auth.context import latchkey
from auth.flows import timeline
from auth.web import counts, guard, schemas
from auth.web.errors import ApiError
from auth.web.fields import is_uuid
from auth.web.paging import bounds, paginated
from auth.web.wire import read_query

blueprint = Blueprint("audit", __name__)

# No list is counted, or leafed through, further than this: there may be many millions, and `until` leads on.
MOST = 100_000


@blueprint.get("/admin/audit")
@guard.admin
def list_audit() -> Response:
    """List the audit log, the newest first: filtered, a page at a time."""
    query = read_query(schemas.AuditQuery())
    found = {"subject": query.get("user"), **{name: query.get(name) for name in ("action", "since", "until", "request_id")}}
    total = latchkey.db.one("count_audit", most=MOST, **found).total
    place = bounds(query)
    entries = latchkey.db.one("list_audit", **place, **found).entries if place["page_offset"] < total else "[]"
    return paginated(entries, total, query["page"], query["per_page"])


@blueprint.get("/admin/users/<user_id>/timeline")
@guard.admin
def get_timeline(user_id: str) -> Response:
    """Tell what has happened to any user, the newest first, and what counts against it now; also of one who is deleted."""
    query = read_query(schemas.PageQuery())
    known = latchkey.db.one("count_timeline", user_id=user_id, most=MOST) if is_uuid(user_id) else None
    if known is None or not (known.exists or known.total):
        raise ApiError("user_not_found")
    place = bounds(query)
    rows = latchkey.db.all("list_timeline", user_id=user_id, **place) if place["page_offset"] < known.total else []
    limits = counts.against(latchkey.settings, latchkey.db, known.addresses or [])
    return paginated(json.dumps([timeline.item(row) for row in rows]), known.total, query["page"], query["per_page"], limits=json.dumps(limits))
