from flask import Blueprint, Response, json

from auth.context import latchkey
from auth.history import timeline
from auth.web import counts, guard, schemas
from auth.web.errors import ApiError
from auth.web.input import known_id, read_query
from auth.web.paging import bounds, paginated

blueprint = Blueprint("audit", __name__)

# The last row that paging reaches; the filter `until` reaches older ones.
MOST = 100_000


@blueprint.get("/admin/audit")
@guard.admin
def list_audit() -> Response:
    """List the audit log, newest first."""
    query = read_query(schemas.AuditQuery())
    filters = {name: query.get(name) for name in ("action", "since", "until", "request_id")}
    filters["subject"] = query.get("user")
    total = latchkey.db.one("count_audit", most=MOST, **filters).total
    place, entries = bounds(query), "[]"
    if place["page_offset"] < total:
        entries = latchkey.db.one("list_audit", **place, **filters).entries
    return paginated(entries, total, query)


@blueprint.get("/admin/users/<user_id>/timeline")
@guard.admin
def get_timeline(user_id: str) -> Response:
    """List the events of a user, even a deleted one, newest first, with the counts of limits."""
    query = read_query(schemas.PageQuery())
    user_id = known_id(user_id, "user_not_found")
    known = latchkey.db.one("count_timeline", user_id=user_id, most=MOST)
    if known.addresses is None and not known.total:
        raise ApiError("user_not_found")
    place, rows = bounds(query), []
    if place["page_offset"] < known.total:
        rows = latchkey.db.all("list_timeline", user_id=user_id, **place)
    items = json.dumps([timeline.item(row) for row in rows])
    limits = json.dumps(counts.against(latchkey.settings, latchkey.db, [user_id, *(known.addresses or [])]))
    return paginated(items, known.total, query, limits=limits)
