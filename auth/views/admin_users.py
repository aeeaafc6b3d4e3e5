import functools
import time
from typing import Any

from flask import Blueprint, Response, jsonify

from auth.account import removal
from auth.admin import users
from auth.context import latchkey
from auth.passwords.policy import check_strength
from auth.web import dialect, guard, schemas
from auth.web.application import JsonResponse
from auth.web.errors import ApiError, found
from auth.web.input import known_id, read_body, read_query
from auth.web.paging import bounds, paginated

blueprint = Blueprint("admin_users", __name__)

# A larger total is cached for `_TOTAL_AGE` seconds.
_EXACT_TOTAL = 1_000
_TOTAL_AGE = 10


@blueprint.post("/admin/users")
@guard.admin
def create_user() -> Response:
    """Create a user."""
    body = read_body(schemas.NewUser())
    if "role" in body and not guard.is_service_role():
        raise ApiError("role.insufficient_permissions", "role: must be absent")
    if "password" in body:
        check_strength(latchkey.settings, body["password"], [body.get("email"), body.get("phone")])
        body["password_hash"] = latchkey.passwords.hash(body["password"])
    elif "password_hash" in body and not latchkey.passwords.can_check(body["password_hash"]):
        cost = latchkey.passwords.highest_cost
        raise ApiError("validation_failed", f"password_hash: must be a bcrypt hash of a cost of 4 to {cost}")
    return JsonResponse(users.create_user(body))


@blueprint.get("/admin/users")
@guard.admin
@dialect.translated(writes=dialect.list_of_users)
def list_users() -> Response:
    """List users: filtered, searched by prefix, sorted, paginated."""
    query = read_query(schemas.UsersQuery())
    prefix = query.get("q", "").strip().lower().removeprefix("@")
    filters: dict[str, Any] = {name: query.get(name) for name in ("email", "role")} | {"q": prefix or None}
    filters["is_anonymous"] = query["is_anonymous"] == "true" if "is_anonymous" in query else None
    order = {"sort": query["sort"], "descending": query["order"] == "desc"}
    row = latchkey.db.one("list_users", **order, **bounds(query), **filters)
    return paginated(row.users, _total(filters), query)


@blueprint.get("/admin/users/<user_id>")
@guard.admin
def get_any_user(user_id: str) -> Response:
    """Return any user."""
    row = latchkey.db.one("select_any_user", id=known_id(user_id, "user_not_found"))
    return JsonResponse(found(row, "user_not_found").user_object)


@blueprint.get("/admin/users/<user_id>/recent_changes")
@guard.admin
def list_recent_changes(user_id: str) -> Response:
    """Return what was added to any user in the last seven days; PUT /admin/users/{id} removes it."""
    user_id = known_id(user_id, "user_not_found")
    found(latchkey.db.one("select_addresses", id=user_id), "user_not_found")
    return jsonify(recent_changes=removal.list_recent(latchkey.db, user_id))


@blueprint.put("/admin/users/<user_id>")
@guard.service_role
def update_any_user(user_id: str) -> Response:
    """Change any user."""
    body = read_body(schemas.AnyUserChange())
    user_id = known_id(user_id, "user_not_found")
    password_hash = None
    if "password" in body:
        known = found(latchkey.db.one("select_addresses", id=user_id), "user_not_found")
        others = [known.email, known.phone, body.get("email"), body.get("phone")]
        check_strength(latchkey.settings, body["password"], others)
        password_hash = latchkey.passwords.hash(body["password"])
    return JsonResponse(users.update_user(user_id, body, password_hash))


@blueprint.delete("/admin/users/<user_id>")
@guard.service_role
def delete_any_user(user_id: str) -> Response:
    """Delete any user and everything that belongs to it."""
    read_body(schemas.Deletion())
    users.delete_user(known_id(user_id, "user_not_found"))
    return jsonify({})


@blueprint.post("/admin/users/<user_id>/logout")
@guard.service_role
def logout_any_user(user_id: str) -> Response:
    """End all sessions of any user."""
    read_body(schemas.AdminInput())
    moment = users.end_sessions(known_id(user_id, "user_not_found"))
    return jsonify(message="User signed out", timestamp=moment)


def _total(filters: dict[str, Any]) -> int:
    total = latchkey.db.one("count_users", most=_EXACT_TOTAL, **filters).total
    if total < _EXACT_TOTAL:
        return total
    return _counted(tuple(filters.items()), int(time.monotonic() / _TOTAL_AGE))


@functools.lru_cache(maxsize=64)
def _counted(filters: tuple[tuple[str, Any], ...], _period: int) -> int:
    return latchkey.db.one("count_users", most=None, **dict(filters)).total
