"""/admin/users: administrators make and see users."""

from flask import Blueprint, Response

from auth import guard, schemas
from auth.context import latchkey
from auth.errors import ApiError
from auth.password_policy import check_strength
from auth.wire import json_response, read_body

blueprint = Blueprint("admin_users", __name__)


@blueprint.post("/admin/users")
@guard.admin
def create_user() -> Response:
    """Make a user as the caller describes it."""
    body = read_body(schemas.NewUser())
    if "role" in body and not guard.is_service_role():
        raise ApiError(403, "insufficient_permissions", "Only the service role key may set a role", "role: must be absent")
    if "password" in body:
        check_strength(latchkey.settings, body["password"], [body["email"], body.get("phone")], status=400)
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
    return json_response(row.user_object)


@blueprint.get("/admin/users/<user_id>")
@guard.admin
def get_any_user(user_id: str) -> Response:
    """Return any user."""
    row = latchkey.db.one("select_any_user", id=user_id) if schemas.is_uuid(user_id) else None
    if row is None:
        raise ApiError(404, "user_not_found", "There is no such user")
    return json_response(row.user_object)
