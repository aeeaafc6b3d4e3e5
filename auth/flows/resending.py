"""Sending a message again. Only the hash of a link is kept, so one with a link or code is written anew."""

from typing import Any

from auth.context import latchkey
from auth.flows import invitations, outgoing
from auth.flows.message_requests import request_message
from auth.web import audit
from auth.web.errors import ApiError, found

# The purpose of the link or code in a message, by kind and channel.
_PURPOSES = {("signup", "email"): "signup", ("signup", "sms"): "sms_signup", ("sms", "sms"): "sms"} | {
    (kind, channel): kind
    for kind in ("magiclink", "recovery", "email_change", "phone_change")
    for channel in ("email", "sms")
}


def resend(message_id: str) -> str:
    """Send a mail or SMS again, a waiting one at once, and return the new one's id. Raises `ApiError`."""
    message = found(latchkey.db.one("select_message", id=message_id), "message.not_found")
    link = {"redirect_to": message.redirect_to}
    if message.is_waiting:
        latchkey.db.one("hurry_message", id=message_id)
        return message_id
    if purpose := _PURPOSES.get((message.kind, message.channel)):
        address = {message.channel.replace("sms", "phone"): message.recipient}
        return request_message(purpose, {**address, **link}, is_told=True)
    if message.kind == "invite":
        body = {"email": message.recipient, "data": {}, "options": {}}
        return invitations.invite(body, message.redirect_to)[1]
    if message.has_link:
        raise ApiError("lost.validation_failed")
    return _repeat(message)


def _repeat(message: Any) -> str:
    again = outgoing.Message(message.recipient, link=False, code=False)
    with latchkey.db.transaction() as tx:
        quota = outgoing.take_quota(tx, message.recipient)
        again.write(tx, message.user_id, message.kind, **message.variables)
        audit.record(tx, message.user_id, None, ["message_resent"], [], kind=message.kind)
    outgoing.note_quota(quota)
    return again.id
