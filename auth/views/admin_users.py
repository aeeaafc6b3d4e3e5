"""/admin/users: administrators make, find, change, ban, sign out and delete users."""

import functools
import math
import time

from flask import Blueprint, Response, jsonify

from auth.context import latchkey
from auth.passwords.policy import check_strength
from auth.web import guard, schemas
from auth.web.application import JsonResponse
from auth.web.errors import ApiError
from auth.web.fields import is_uuid
from auth.web.paging import bounds, paginated
from auth.web.wire import read_body, read_query

blueprint = Blueprint("admin_users", __name__)

# Up to here a listing's total is counted each time; beyond, the whole count is as many seconds old at most.
_EXACT_TOTAL = 1_000
_TOTAL_AGE = 10


@blueprint.post("/admin/users")
@guard.admin
def create_user() -> Response:
    """Make a user as the caller describes it."""
    body = read_body(schemas.NewUser())
    if "role" in body and not guard.is_service_role():
        raise ApiError("role.insufficient_permissions", "role: must be absent")
    if "password" in body:
        check_strength(latchkey.settings, body["password"], [body["email"], body.get("phone")])
    row = latchkey.db.one(
        "create_user",
        email=body["email"],
        phone=body.get("phone"),
        password_hash=latchkey.passwords.hash(body["password"]) if "password" in body else None,
        role=body.get("role"),
        user_metadata=body["user_metadata"],
        app_metadata=body["app_metadata"],
        email_confirm=body["email_confirm"],
        phone_confirm=body["phone_confirm"],
    )
    return JsonResponse(row.user_object)


@blueprint.get("/admin/users")
@guard.admin
def list_users() -> Response:
    """List users: filtered, found by prefix, sorted, a page at a time."""
    query = read_query(schemas.UsersQuery())
    # An address in its canonical form is in lower case; @example.com means the domain.
    found = {"email": query.get("email"), "role": query.get("role"), "q": query.get("q", "").strip().lower().removeprefix("@") or None}
    row = latchkey.db.one("list_users", sort=query["sort"], descending=query["order"] == "desc", **bounds(query), **found)
    return paginated(row.users, _total(found), query["page"], query["per_page"])


@blueprint.get("/admin/users/<user_id>")
@guard.admin
def get_any_user(user_id: str) -> Response:
    """Return any user."""
    row = latchkey.db.one("select_any_user", id=_existing_id(user_id))
    if row is None:
        raise _no_such_user()
    return JsonResponse(row.user_object)


@blueprint.put("/admin/users/<user_id>")
@guard.service_role
def update_any_user(user_id: str) -> Response:
    """Change any user."""
    body = read_body(schemas.AnyUserChange())
    user_id = _existing_id(user_id)
    password_hash = None
    if "password" in body:
        known = latchkey.db.one("select_addresses", id=user_id)
        if known is None:
            raise _no_such_user()
        check_strength(latchkey.settings, body["password"], [known.email, known.phone, body.get("email"), body.get("phone")])
        password_hash = latchkey.passwords.hash(body["password"])
    ban_seconds = body.get("ban_duration")
    row = latchkey.db.one(
        "update_any_user",
        id=user_id,
        email=body.get("email"),
        phone=body.get("phone"),
        password_hash=password_hash,
        role=body.get("role"),
        user_metadata=body["user_metadata"],
        app_metadata=body["app_metadata"],
        sets_ban=ban_seconds is not None,
        ban_seconds=None if ban_seconds == math.inf else ban_seconds,
        email_confirm=body.get("email_confirm", False),
        sets_email_confirmed="email_confirmed_at" in body,
        email_confirmed_at=body.get("email_confirmed_at"),
        phone_confirm=body.get("phone_confirm", False),
        sets_phone_confirmed="phone_confirmed_at" in body,
        phone_confirmed_at=body.get("phone_confirmed_at"),
    )
    if row is None:
        raise _no_such_user()
    return JsonResponse(row.user_object)


@blueprint.delete("/admin/users/<user_id>")
@guard.service_role
def delete_any_user(user_id: str) -> Response:
    """Delete any user with all that belongs to it."""
    if not latchkey.db.run("delete_any_user", id=_existing_id(user_id)):
        raise _no_such_user()
    return jsonify({})


@blueprint.post("/admin/users/<user_id>/logout")
@guard.service_role
def logout_any_user(user_id: str) -> Response:
    """End all sessions of any user."""
    row = latchkey.db.one("end_any_users_sessions", id=_existing_id(user_id))
    if row is None:
        raise _no_such_user()
    return jsonify(message="User signed out", timestamp=row.moment)


def _existing_id(user_id: str) -> str:
    """Return a path's id in the form that Postgres reads. Raises `ApiError` 404: another form names nobody."""
    if not is_uuid(user_id):
        raise _no_such_user()
    return user_id


def _no_such_user() -> ApiError:
    return ApiError("user_not_found")


def _total(found: dict[str, str | None]) -> int:
    total = latchkey.db.one("count_users", most=_EXACT_TOTAL, **found).total
    if total < _EXACT_TOTAL:
        return total
    return _counted(tuple(found.items()), int(time.monotonic() / _TOTAL_AGE))


@functools.lru_cache(maxsize=64)
def _counted(found: tuple[tuple[str, str | None], ...], _period: int) -> int:
    return latchkey.db.one("count_users", most=None, **dict(found)).total
