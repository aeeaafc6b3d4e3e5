from typing import Any

from flask import Blueprint, Response, json

from auth.account.sign_up import create_addressed_user
from auth.admin import invitations
from auth.context import latchkey
from auth.messages import outgoing
from auth.passwords.policy import check_strength
from auth.sign_in.arrivals import requested_target
from auth.web import audit, counted, guard, schemas
from auth.web.application import JsonResponse
from auth.web.errors import ApiError, found
from auth.web.input import read_body
from sql import Transaction

blueprint = Blueprint("admin_links", __name__)


@blueprint.post("/admin/generate_link")
@guard.service_role
def generate_link() -> Response:
    """Create a link, and the code that goes with it, without sending them."""
    body = read_body(schemas.NewLink())
    # The variants name the address to which the client mails the link. Both confirm the new address.
    purpose = "email_change" if body["type"].startswith("email_change") else body["type"]
    email, new_email = body["email"], body["new_email"] if purpose == "email_change" else None
    password_hash = None
    if "password" in body and purpose in ("signup", "recovery"):
        check_strength(latchkey.settings, body["password"], [email])
        password_hash = latchkey.passwords.hash(body["password"])
    redirect_to = requested_target(purpose, body) or latchkey.settings.site_url
    message = outgoing.Message(new_email or email)
    with latchkey.db.transaction() as tx:
        user_id, is_created = _linked_user(tx, purpose, body, password_hash)
        if new_email:
            _request_email_change(tx, user_id, new_email)
        link_password = password_hash if purpose == "recovery" else None
        message.write_token(tx, user_id, purpose, redirect_to=redirect_to, password_hash=link_password)
        made_by = "link" if is_created else None
        acts, details = ["user_created" if made_by else None, "link_generated"], {"purpose": purpose}
        details |= {"new_email": new_email, "by": made_by}
        audit.record(tx, user_id, email, acts, ["user.created" if made_by else None], **details)
        user = tx.one("select_any_user", id=user_id).user_object
    parameters = {"token": str(message.link), "type": purpose, "redirect_to": redirect_to}
    link = {
        "action_link": outgoing.own_url("verify", parameters),
        "email_otp": message.code,
        "hashed_token": message.link,
        "verification_type": body["type"],
        "redirect_to": redirect_to,
    }
    return JsonResponse(json.dumps(json.loads(user) | link))


def _linked_user(
    tx: Transaction, purpose: str, body: dict[str, Any], password_hash: str | None
) -> tuple[str, bool]:
    """Return the id of the user that a link is for, and whether the user is new. Raises `ApiError`."""
    creates = purpose in ("signup", "invite")
    own = {"is_invited": purpose == "invite", "password_hash": password_hash if purpose == "signup" else None}
    created_id = create_addressed_user(tx, body, "link", is_wanted=creates, **own)
    if created_id:
        return created_id, True
    user = found(tx.one("lock_user_by_email", email=body["email"]), "email.user_not_found")
    if not creates:
        return user.id, False
    if user.is_confirmed:
        raise ApiError("email_exists")
    tx.run("take_over_unconfirmed", user_id=user.id, user_metadata=body["data"], **own)
    tx.run("end_user_sessions", user_id=user.id, kept_session_id=None, reason="address_proved")
    tx.run("void_tokens", user_id=user.id)
    return user.id, False


def _request_email_change(tx: Transaction, user_id: str, new_email: str) -> None:
    if tx.one("select_user_of_address", address=new_email):
        raise ApiError("email_exists")
    tx.run("request_email_change", user_id=user_id, new_email=new_email)


@blueprint.post("/admin/invite")
@blueprint.post("/invite")
@guard.service_role
@counted("invite")
def invite() -> Response:
    """Invite a user by mail, or again until the user accepts."""
    body = read_body(schemas.Invitation())
    user, message_id = invitations.invite(body)
    return JsonResponse(f'{{"user": {user}, "message_id": "{message_id}"}}')
