"""POST /magiclink, /otp, /recover and /resend, GET /reauthenticate: links and codes on request.

Anybody may ask for a message to any address, so the response never tells whether one was sent.
"""

from typing import Any

from flask import Blueprint, Response, g, jsonify, request

from auth.context import latchkey
from auth.flows import outgoing
from auth.flows.reauthentication import lock_caller
from auth.web import guard, schemas
from auth.web.errors import ApiError
from auth.web.input import checked_redirect, read_body
from auth.web.limits import limited
from sql import Transaction

blueprint = Blueprint("passwordless", __name__)


@blueprint.post("/magiclink")
@limited("recover")
def magiclink() -> Response:
    """Send a link that signs in."""
    return _request("magiclink", read_body(schemas.Magiclink()))


@blueprint.post("/otp")
@limited("recover")
def otp() -> Response:
    """Send a code that signs in: by SMS, or by mail together with a link."""
    body = read_body(schemas.Otp())
    return _request("magiclink" if "email" in body else "sms", body)


@blueprint.post("/recover")
@limited("recover")
def recover() -> Response:
    """Send a link that signs in a user who has lost their password."""
    return _request("recovery", read_body(schemas.Recover()))


@blueprint.post("/resend")
@limited("recover")
def resend() -> Response:
    """Send the message that confirms a sign-up or a new address again."""
    body = read_body(schemas.Resend())
    return _request({"sms": "sms_signup"}.get(body["type"], body["type"]), body)


@blueprint.get("/reauthenticate")
@guard.access_token
@limited("recover")
def reauthenticate() -> Response:
    """Send the caller a code for a sensitive change, which an older session needs."""
    known = guard.admit(latchkey.db.one("select_caller", **guard.caller()))
    if request.method == "HEAD":
        return Response()
    email = known.email if known.email_confirmed else None
    phone = known.phone if known.phone_confirmed and not email else None
    address = email or phone
    if address is None:
        raise ApiError("reauthentication.validation_failed")
    message, user_id = outgoing.Message(address, link=False), guard.caller_id()
    with latchkey.db.transaction() as tx:
        quota = outgoing.take_quota(
            tx, outgoing.quota(address), f"over_{'email' if email else 'sms'}_send_rate_limit"
        )
        lock_caller(tx, reauthenticated=True)
        tx.run(
            "write_token", **message.token_row(user_id, "reauthentication", session_id=g.caller.session_id)
        )
        tx.run("write_message", **message.message_row(user_id, "reauthentication"))
        details = {"purpose": "reauthentication", "is_sent": True}
        tx.run(
            "record_acts", user_id=user_id, email=None, acts=["message_requested"], events=[], details=details
        )
    outgoing.note_quota(quota)
    return _sent(message.id)


def _request(purpose: str, body: dict[str, Any]) -> Response:
    """Send a message. Any address runs the same statements, and writes one message, if only of kind `none`."""
    email, phone = body.get("email"), body.get("phone")
    address = email or body["phone"]
    outgoing.check_channel(email, phone)
    redirect_to = checked_redirect(body)
    message = outgoing.Message(address)
    with latchkey.db.transaction() as tx:
        has_quota = tx.one("take_from_quota", **outgoing.quota(address)).seconds_left == 0
        created_id = _create_user(tx, body, has_quota)
        user = tx.one("lock_recipient", purpose=purpose, email=email, phone=phone)
        is_due = has_quota and user is not None and user.is_due
        token = message.token_row(
            user.id if is_due else None,
            purpose,
            redirect_to=redirect_to,
            code_challenge=body.get("code_challenge"),
            session_id=user and user.session_id,
        )
        tx.run("write_token", **token)
        kind = purpose.replace("sms_signup", "sms") if is_due else "none"
        others = {"redirect_to": redirect_to} | (user.sign_up if user else {})
        tx.run("write_message", **message.message_row(user and user.id, kind, **others))
        tx.run(
            "record_acts",
            user_id=user and user.id,
            email=email,
            acts=["user_created" if created_id else None, "message_requested"],
            events=["user.created" if created_id else None],
            details={"by": "message" if created_id else None, "purpose": purpose, "is_sent": is_due},
        )
    return _sent(message.id)


def _create_user(tx: Transaction, body: dict[str, Any], has_quota: bool) -> str | None:
    """Create a user for a free address if the request asks for it, and return the id."""
    email, phone = body.get("email"), body.get("phone")
    created = tx.one(
        "insert_addressed_user",
        is_wanted=has_quota and body.get("create_user", False) and not latchkey.settings.disable_signup,
        email=email,
        phone=phone,
        password_hash=None,
        user_metadata=body.get("data", {}),
        app_metadata={},
        made_by="message",
        is_invited=False,
    )
    user_id = created and created.id
    tx.run(
        "write_address_identity",
        user_id=user_id,
        provider="email" if email else "phone",
        address=email or phone,
    )
    return user_id


def _sent(message_id: str) -> Response:
    return jsonify(message="If a user has this address, the message is on its way", message_id=message_id)
