"""GET, PUT and DELETE /user: what users do with their own account."""

from flask import Blueprint, Response, jsonify

from auth.context import latchkey
from auth.flows import outgoing
from auth.flows.reauthentication import lock_caller, reauthenticate
from auth.flows.user_changes import Change, change_user
from auth.passwords.policy import check_strength
from auth.web import guard, schemas
from auth.web.application import JsonResponse
from auth.web.errors import ApiError
from auth.web.input import json_body, read_body
from auth.web.limits import limited

blueprint = Blueprint("user", __name__)


@blueprint.get("/user")
@guard.access_token
def get_user() -> Response:
    """Return the caller."""
    row = guard.admit(latchkey.db.one("select_user", **guard.caller()))
    return JsonResponse(row.user_object)


def _changes_address() -> bool:
    # Null says nothing.
    return any(json_body().get(name) is not None for name in ("email", "phone"))


@blueprint.put("/user")
@guard.access_token
@limited("user_changes", key=guard.caller_id)
@limited("address_changes", key=guard.caller_id, unless=lambda: not _changes_address())
def update_user() -> Response:
    """Change the caller's metadata and password at once, and make a new email or phone pending."""
    body = read_body(schemas.UserChange())
    email, phone, password = body.get("email"), body.get("phone"), body.get("password")
    outgoing.check_channel(email, phone)
    checked_hash, password_hash, reauthenticated = None, None, False
    if email or phone or password is not None:
        known = guard.admit(latchkey.db.one("select_caller", **guard.caller()))
        # What stays as it is needs no proof, and counts as no message.
        email, phone = None if email == known.email else email, None if phone == known.phone else phone
        if password is not None:
            check_strength(latchkey.settings, password, [known.email, known.phone])
            # A request that is refused admission has not spent the code that was sent. The proof comes before the comparison
            # with the old password, which would let an old session try passwords.
            with latchkey.passwords.queue():
                reauthenticated = reauthenticate(known, body)
                checked_hash, password_hash = known.password_hash, _new_hash(password, known.password_hash)
        elif email or phone:
            reauthenticated = reauthenticate(known, body)
    change = Change(body.get("data"), email, phone, password_hash, checked_hash, reauthenticated)
    row = change_user(change, body)
    return JsonResponse(row.user_object)


@blueprint.delete("/user")
@guard.access_token
@limited("user_changes", key=guard.caller_id)
def delete_user() -> Response:
    """Delete the caller and all that belongs to it."""
    body = read_body(schemas.Reauthentication())
    reauthenticated = bool(body) and reauthenticate(guard.admit(latchkey.db.one("select_caller", **guard.caller())), body)
    with latchkey.db.transaction() as tx:
        caller = lock_caller(tx, reauthenticated)
        row = tx.one("delete_user", user_id=caller.id)
    return jsonify(message="User deleted", timestamp=row.moment)


def _new_hash(password: str, password_hash: str | None) -> str:
    if password_hash is not None and latchkey.passwords.check(password, password_hash):
        raise ApiError("same_password", "password: must differ from the current one")
    return latchkey.passwords.hash(password)
