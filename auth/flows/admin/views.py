import functools
import time
from typing import Any

from flask import Blueprint, Response, json, jsonify

from auth.flows.account import removal
from auth.flows.admin import links, messages, users
from auth.flows.history import timeline
from auth.web import counted, counts, dialect, guard, schemas, takes_metadata
from auth.web.application import JsonResponse
from auth.web.asked import current_asked
from auth.web.context import latchkey
from auth.web.errors import ApiError, found
from auth.web.input import known_id, read_body, read_query
from auth.web.paging import bounds, paginated
from sql import queries

blueprint = Blueprint("admin", __name__)

# The last row of the log and of a timeline that paging reaches. The filter `until` reaches older rows.
MOST_EVENTS = 100_000
# A larger total is cached for `_TOTAL_AGE` seconds.
_EXACT_TOTAL = 1_000
_TOTAL_AGE = 10


@blueprint.post("/admin/users")
@takes_metadata
@guard.admin
def create_user() -> Response:
    return JsonResponse(users.create_user(current_asked(), read_body(schemas.NewUser())))


@blueprint.get("/admin/users")
@guard.admin
@dialect.translated(writes=dialect.list_of_users)
def list_users() -> Response:
    query = read_query(schemas.UsersQuery())
    prefix = query.get("q", query.get("filter", "")).strip().lower().removeprefix("@")
    filters: dict[str, Any] = {name: query.get(name) for name in ("email", "role")} | {"q": prefix or None}
    filters["is_anonymous"] = query["is_anonymous"] == "true" if "is_anonymous" in query else None
    order: dict[str, Any] = {"sort": query["sort"], "descending": query["order"] == "desc"}
    row = queries.list_users(latchkey.db, most=_EXACT_TOTAL, **order, **bounds(query), **filters)
    total = row.total
    if total == _EXACT_TOTAL:
        total = _large_total(tuple(filters.items()), int(time.monotonic() / _TOTAL_AGE))
    return paginated(row.users, total, query)


@functools.lru_cache(maxsize=64)
def _large_total(filters: tuple[tuple[str, Any], ...], _period: int) -> int:
    nobody: dict[str, Any] = {"sort": "created_at", "descending": True, "page_size": 0, "page_offset": 0}
    return queries.list_users(latchkey.db, most=None, **nobody, **dict(filters)).total


@blueprint.get("/admin/users/<user_id>")
@guard.admin
def get_any_user(user_id: str) -> Response:
    row = queries.select_any_user(latchkey.db, id=known_id(user_id, "user_not_found"))
    return JsonResponse(found(row, "user_not_found").user_object)


@blueprint.get("/admin/users/<user_id>/recent_changes")
@guard.admin
def list_recent_changes(user_id: str) -> Response:
    """Return a user's additions of the last seven days, which PUT /admin/users/{id} can remove."""
    user_id = known_id(user_id, "user_not_found")
    found(queries.select_addresses(latchkey.db, id=user_id), "user_not_found")
    return jsonify(recent_changes=removal.list_recent(latchkey.db, user_id))


@blueprint.put("/admin/users/<user_id>")
@takes_metadata
@guard.service_role
def update_any_user(user_id: str) -> Response:
    asked, body = current_asked(), read_body(schemas.AnyUserChange())
    user_id = known_id(user_id, "user_not_found")
    return JsonResponse(users.update_user(asked, user_id, body, users.hash_of(asked, body, user_id)))


@blueprint.delete("/admin/users/<user_id>")
@guard.service_role
def delete_any_user(user_id: str) -> Response:
    read_body(schemas.Deletion())
    users.delete_user(current_asked(), known_id(user_id, "user_not_found"))
    return jsonify({})


@blueprint.post("/admin/users/<user_id>/logout")
@guard.service_role
def logout_any_user(user_id: str) -> Response:
    read_body(schemas.AdminInput())
    moment = users.end_sessions(current_asked(), known_id(user_id, "user_not_found")).moment
    return jsonify(message="User signed out", timestamp=moment)


@blueprint.post("/admin/generate_link")
@takes_metadata
@guard.service_role
def generate_link() -> Response:
    """Create a link, and the code that goes with it, without sending them."""
    return JsonResponse(json.dumps(links.generate(current_asked(), read_body(schemas.NewLink()))))


@blueprint.post("/admin/invite")
@blueprint.post("/invite")
@takes_metadata
@guard.service_role
@counted("invite")
@dialect.translated(writes=lambda body: body["user"])
def invite() -> Response:
    """Invite a user by email, once or again until the user accepts."""
    user, message_id = messages.invite(current_asked(), read_body(schemas.Invitation()))
    return JsonResponse(f'{{"user": {user}, "message_id": "{message_id}"}}')


@blueprint.get("/admin/audit")
@guard.admin
@dialect.translated(writes=dialect.list_of_entries)
def list_audit() -> Response:
    query = read_query(schemas.AuditQuery())
    filters = {name: query.get(name) for name in ("action", "since", "until", "request_id")}
    filters["subject"] = query.get("user")
    total = queries.count_audit(latchkey.db, most=MOST_EVENTS, **filters).total
    place, entries = bounds(query), "[]"
    if place["page_offset"] < total:
        entries = queries.list_audit(latchkey.db, **place, **filters).entries
    return paginated(entries, total, query)


@blueprint.get("/admin/users/<user_id>/timeline")
@guard.admin
def get_timeline(user_id: str) -> Response:
    """List the events of a user, even a deleted one, newest first, with the counts of limits."""
    query = read_query(schemas.AdminPageQuery())
    user_id = known_id(user_id, "user_not_found")
    known = queries.count_timeline(latchkey.db, user_id=user_id, most=MOST_EVENTS)
    if known.addresses is None and not known.total:
        raise ApiError("user_not_found")
    place = bounds(query)
    is_within = place["page_offset"] < known.total
    rows = queries.list_timeline(latchkey.db, user_id=user_id, **place) if is_within else []
    items = json.dumps([timeline.item(row) for row in rows])
    limits = json.dumps(counts.against(latchkey.settings, latchkey.db, [user_id, *(known.addresses or [])]))
    return paginated(items, known.total, query, limits=limits)
