"""/admin/users: create, find, change, ban, sign out and delete users."""

import functools
import time
from typing import Any

from flask import Blueprint, Response, jsonify

from auth.context import latchkey
from auth.flows import user_administration
from auth.passwords.policy import check_strength
from auth.web import guard, schemas
from auth.web.application import JsonResponse
from auth.web.errors import ApiError
from auth.web.fields import is_uuid
from auth.web.input import read_body, read_query
from auth.web.paging import bounds, paginated

blueprint = Blueprint("admin_users", __name__)

# A listing's total is exact up to `_EXACT_TOTAL`; a larger one is at most `_TOTAL_AGE` seconds old.
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
        check_strength(latchkey.settings, body["password"], [body["email"], body.get("phone")])
    password_hash = latchkey.passwords.hash(body["password"]) if "password" in body else None
    return JsonResponse(user_administration.create_user(body, password_hash))


@blueprint.get("/admin/users")
@guard.admin
def list_users() -> Response:
    """List users: filtered, searched by prefix, sorted, paginated."""
    query = read_query(schemas.UsersQuery())
    # Canonical addresses are in lower case; @example.com is a domain.
    prefix = query.get("q", "").strip().lower().removeprefix("@")
    found = {"email": query.get("email"), "role": query.get("role"), "q": prefix or None}
    row = latchkey.db.one(
        "list_users", sort=query["sort"], descending=query["order"] == "desc", **bounds(query), **found
    )
    return paginated(row.users, _total(found), query["page"], query["per_page"])


@blueprint.get("/admin/users/<user_id>")
@guard.admin
def get_any_user(user_id: str) -> Response:
    """Return any user."""
    return JsonResponse(_existing(latchkey.db.one("select_any_user", id=_existing_id(user_id))).user_object)


@blueprint.put("/admin/users/<user_id>")
@guard.service_role
def update_any_user(user_id: str) -> Response:
    """Change any user."""
    body = read_body(schemas.AnyUserChange())
    user_id = _existing_id(user_id)
    password_hash = None
    if "password" in body:
        known = _existing(latchkey.db.one("select_addresses", id=user_id))
        others = [known.email, known.phone, body.get("email"), body.get("phone")]
        check_strength(latchkey.settings, body["password"], others)
        password_hash = latchkey.passwords.hash(body["password"])
    return JsonResponse(user_administration.update_user(user_id, body, password_hash))


@blueprint.delete("/admin/users/<user_id>")
@guard.service_role
def delete_any_user(user_id: str) -> Response:
    """Delete any user and everything that belongs to it."""
    if not latchkey.db.run("delete_user", user_id=_existing_id(user_id)):
        raise ApiError("user_not_found")
    return jsonify({})


@blueprint.post("/admin/users/<user_id>/logout")
@guard.service_role
def logout_any_user(user_id: str) -> Response:
    """End all sessions of any user."""
    row = _existing(latchkey.db.one("end_any_users_sessions", id=_existing_id(user_id)))
    return jsonify(message="User signed out", timestamp=row.moment)


def _existing_id(user_id: str) -> str:
    """Return the id of a path, if it is a UUID in its canonical form. Raises `ApiError` 404."""
    if not is_uuid(user_id):
        raise ApiError("user_not_found")
    return user_id


def _existing(row: Any) -> Any:
    if row is None:
        raise ApiError("user_not_found")
    return row


def _total(found: dict[str, str | None]) -> int:
    total = latchkey.db.one("count_users", most=_EXACT_TOTAL, **found).total
    if total < _EXACT_TOTAL:
        return total
    return _counted(tuple(found.items()), int(time.monotonic() / _TOTAL_AGE))


@functools.lru_cache(maxsize=64)
def _counted(found: tuple[tuple[str, str | None], ...], _period: int) -> int:
    return latchkey.db.one("count_users", most=None, **dict(found)).total
