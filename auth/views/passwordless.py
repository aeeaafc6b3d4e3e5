"""POST /magiclink, /otp, /recover and /resend, GET /reauthenticate: links and codes on request.

Whoever asks need not be whom the message goes to: the answer never tells whether it was sent.
"""

from typing import Any

from flask import Blueprint, Response, g, jsonify, request

from auth.context import latchkey
from auth.flows import outgoing
from auth.web import guard, schemas
from auth.web.errors import ApiError
from auth.web.limits import limited
from auth.web.wire import checked_redirect, read_body
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
    """Send a code that signs in: by SMS, or by mail with a link beside it."""
    body = read_body(schemas.Otp())
    return _request("magiclink" if "email" in body else "sms", body)


@blueprint.post("/recover")
@limited("recover")
def recover() -> Response:
    """Send a link that signs in a user who has lost the password."""
    return _request("recovery", read_body(schemas.Recover()))


@blueprint.post("/resend")
@limited("recover")
def resend() -> Response:
    """Send once more what confirms a sign-up or a new address."""
    body = read_body(schemas.Resend())
    return _request({"sms": "sms_signup"}.get(body["type"], body["type"]), body)


@blueprint.get("/reauthenticate")
@guard.access_token
@limited("recover")
def reauthenticate() -> Response:
    """Send the caller a code that a session of some age needs for what is sensitive."""
    known = guard.admit(latchkey.db.one("select_caller", **guard.caller()))
    if request.method == "HEAD":
        return Response()
    email = known.email if known.email_confirmed else None
    phone = known.phone if known.phone_confirmed and not email else None
    address = email or phone
    if address is None:
        raise ApiError("reauthentication.validation_failed")
    message = outgoing.Message(address, link=False)
    with latchkey.db.transaction() as tx:
        quota = tx.one("take_from_quota", **outgoing.quota(address))
        tx.one("lock_user", user_id=guard.caller_id())
        state = tx.one("select_caller", **guard.caller())
        if quota.seconds_left == 0 and state is not None and state.state == "live":
            _write_reauthentication(tx, message)
    guard.admit(state)
    if quota.seconds_left:
        raise outgoing.over_quota("over_email_send_rate_limit" if email else "over_sms_send_rate_limit", quota)
    outgoing.note_quota(quota)
    return _sent(message.id)


def _write_reauthentication(tx: Transaction, message: outgoing.Message) -> None:
    user_id = guard.caller_id()
    tx.run("write_token", **message.token_row(user_id, "reauthentication", session_id=g.caller.session_id))
    tx.run("write_message", **message.message_row(user_id, "reauthentication"))
    details = {"purpose": "reauthentication", "is_sent": True}
    tx.run("record_acts", user_id=user_id, email=None, acts=["message_requested"], events=[], details=details)


def _request(purpose: str, body: dict[str, Any]) -> Response:
    settings = latchkey.settings
    email, phone = body.get("email"), body.get("phone")
    address = email or body["phone"]
    outgoing.check_channel(email, phone)
    redirect_to = checked_redirect(body)
    secrets = outgoing.secrets_for(address)
    latchkey.db.run(
        "request_message",
        **secrets,
        **outgoing.quota(address),
        purpose=purpose,
        email=email,
        phone=phone,
        create_user=body.get("create_user", False) and not settings.disable_signup,
        user_metadata=body.get("data", {}),
        redirect_to=redirect_to,
        code_challenge=body.get("code_challenge"),
        message_variables=outgoing.variables(redirect_to=redirect_to),
    )
    return _sent(secrets["message_id"])


def _sent(message_id: str) -> Response:
    return jsonify(message="If there is somebody to send it to, the message is on its way", message_id=message_id)
