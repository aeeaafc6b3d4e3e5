"""GET, PUT and DELETE /user: what users do with their own account."""

import uuid
from typing import Any

from flask import Blueprint, Response, g, jsonify

from auth import guard, schemas
from auth.context import latchkey
from auth.errors import ApiError
from auth.limits import limited
from auth.password_attempts import password_attempt
from auth.password_policy import check_strength
from auth.wire import json_body, json_response, read_body

blueprint = Blueprint("user", __name__)

_CHANGE_REFUSALS = {
    "email_exists": (409, "A user with this email address has already been registered"),
    "phone_exists": (409, "A user with this phone number has already been registered"),
}


@blueprint.get("/user")
@guard.access_token
def get_user() -> Response:
    """Return the caller."""
    row = guard.admit(latchkey.db.one("select_user", **guard.caller()))
    return json_response(row.user_object)


@blueprint.put("/user")
@guard.access_token
@limited("user_changes", key=guard.caller_id)
@limited("address_changes", key=guard.caller_id, unless=lambda: not _changes_address())
def update_user() -> Response:
    """Change the caller's metadata and password at once, and make a new email or phone pending."""
    body = read_body(schemas.UserChange())
    checked_hash, reauthenticated = None, False
    if "password" in body or "current_password" in body:
        known = guard.admit(latchkey.db.one("select_caller", **guard.caller()))
        checked_hash = known.password_hash
        reauthenticated = _is_reauthenticated(known, body)
        if "password" in body:
            _check_new_password(body, known, reauthenticated)
    row = guard.admit(
        latchkey.db.one(
            "update_user",
            reauthenticated=reauthenticated,
            user_metadata=body.get("data"),
            password_hash=latchkey.passwords.hash(body["password"]) if "password" in body else None,
            checked_password_hash=checked_hash,
            email=body.get("email"),
            phone=body.get("phone"),
            message_id=str(uuid.uuid4()),
            **guard.caller(),
        )
    )
    if row.state in _CHANGE_REFUSALS:
        status, msg = _CHANGE_REFUSALS[row.state]
        raise ApiError(status, row.state, msg)
    if row.state == "reauthentication_needed":
        raise _reauthentication_needed()
    latchkey.deliverer.wake()
    return json_response(row.user_object)


@blueprint.delete("/user")
@guard.access_token
@limited("user_changes", key=guard.caller_id)
def delete_user() -> Response:
    """Delete the caller and all that belongs to it."""
    body = read_body(schemas.Reauthentication())
    reauthenticated = False
    if "current_password" in body:
        reauthenticated = _is_reauthenticated(guard.admit(latchkey.db.one("select_caller", **guard.caller())), body)
    row = guard.admit(latchkey.db.one("delete_user", reauthenticated=reauthenticated, **guard.caller()))
    if row.state == "reauthentication_needed":
        raise _reauthentication_needed()
    return jsonify(message="User deleted", timestamp=row.moment)


def _changes_address() -> bool:
    return not {"email", "phone"}.isdisjoint(json_body())


def _is_reauthenticated(known: Any, body: dict[str, Any]) -> bool:
    """Whether the session is old enough to need the current password, and it was given. Raises `ApiError` for a wrong one."""
    age = latchkey.settings.reauthentication_age
    if age is None or known.session_age < age or "current_password" not in body:
        return False
    with password_attempt(known.email, None if known.email else known.phone) as attempt:
        if not attempt.check(body["current_password"]):
            raise ApiError(400, "current_password_invalid", "The current password is wrong", "current_password: must be the user's password")
    latchkey.db.one("finish_password_attempt", email=known.email, phone=known.phone, network=g.network, is_stranger=attempt.is_stranger)
    return True


def _check_new_password(body: dict[str, Any], known: Any, reauthenticated: bool) -> None:
    check_strength(latchkey.settings, body["password"], [known.email, known.phone], status=422)
    age = latchkey.settings.reauthentication_age
    # Asked before the next check, which would otherwise let an old session try passwords.
    if age is not None and known.session_age >= age and not reauthenticated:
        raise _reauthentication_needed()
    with latchkey.passwords.slot() as slot:
        is_same = known.password_hash is not None and slot.check(body["password"], known.password_hash)
    if is_same:
        raise ApiError(422, "same_password", "The new password is the same as the old one", "password: must differ from the current one")


def _reauthentication_needed() -> ApiError:
    details = "current_password: must be given, since this session is too old for this change without it"
    return ApiError(400, "reauthentication_needed", "This needs reauthentication", details)
