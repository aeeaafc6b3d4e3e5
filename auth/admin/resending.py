"""Messages sent again by an administrator, who never sees the link or the code."""

from collections.abc import Callable
from typing import Any

from auth.context import latchkey
from auth.links.requests import write_requested
from auth.messages import outgoing
from auth.tokens import one_time
from auth.web import audit, targets
from auth.web.errors import ApiError, found
from auth.web.input import known_id
from sql import Transaction

# Messages that users request. Resending one creates another link or code.
REQUESTED = {"signup", "magiclink", "recovery", "sms", "email_change", "phone_change"}


def find(message_id: str) -> Any:
    """Return the row of a mail or SMS that can be sent again. Raises `ApiError`."""
    id = known_id(message_id, "message.not_found")
    message = found(latchkey.db.one("select_message", id=id), "message.not_found")
    if message.is_for_administrator:
        raise targets.refusal(message.user_id)
    if why := _obstacle(message):
        raise ApiError("message.validation_failed", why=why)
    return message


def _obstacle(message: Any) -> str | None:
    if message.outcome == "waiting":
        return None
    if not message.has_user:
        return "its user no longer exists"
    if message.kind == "reauthentication":
        return "only the user can ask for this code, where it is needed"
    if message.has_link and message.outcome == "sent":
        return "it was delivered, and another one would void the link in it"
    return None


def resend(message_id: str) -> str:
    """Send a mail or SMS again, a waiting one at once, and return the new one's id. Raises `ApiError`."""
    message = find(message_id)
    if message.outcome == "waiting":
        return _hurry(message)
    with targets.act() as tx:
        quota = outgoing.take_quota(tx, message.recipient)
        # The user may have become an administrator.
        targets.lock(tx, message.user_id)
        id = _way(message.kind)(tx, message)
        audit.record(tx, message.user_id, None, ["message_resent"], [], kind=message.kind)
    outgoing.note_quota(quota)
    return id


def _hurry(message: Any) -> str:
    with targets.act() as tx:
        if message.has_user:
            targets.lock(tx, message.user_id)
        tx.one("hurry_message", id=message.id)
    return message.id


def _way(kind: str) -> Callable[[Transaction, Any], str]:
    return _request_again if kind in REQUESTED else {"invite": _invite_again}.get(kind, _notify_again)


def _request_again(tx: Transaction, message: Any) -> str:
    purpose = "sms_signup" if (message.kind, message.channel) == ("signup", "sms") else message.kind
    to = {"email": None, "phone": None, message.channel.replace("sms", "phone"): message.recipient}
    outgoing.check_channel(**to)
    user = tx.one("lock_recipient", purpose=purpose, browser_hash=message.browser_hash, **to)
    # The address may belong to another user now.
    if user is None or user.id != message.user_id or not user.is_due:
        raise ApiError("undue.validation_failed")
    again, link = outgoing.Message(message.recipient), {"redirect_to": message.variables.get("redirect_to")}
    bound_to = {
        name: getattr(message, name) for name in ("code_challenge", "browser_hash", "user_agent", "ip")
    }
    write_requested(tx, again, purpose, user, link, bound_to, **_request_of(message))
    return again.id


def _invite_again(tx: Transaction, message: Any) -> str:
    user = tx.one("lock_user_by_email", email=message.recipient)
    if user is None or user.id != message.user_id or not user.is_invited or user.is_banned:
        raise ApiError("undue.validation_failed")
    again = outgoing.Message(message.recipient, code=False, lifetime=one_time.INVITATION_LIFETIME)
    redirect_to = message.variables.get("redirect_to")
    again.write_token(tx, user.id, "invite", redirect_to=redirect_to)
    again.write(tx, user.id, "invite", redirect_to=redirect_to, **_request_of(message))
    return again.id


def _notify_again(tx: Transaction, message: Any) -> str:
    """Copy a notice. If its undo link never left, the copy gets another one in its place."""
    id, token, sealed = outgoing.new_id(), one_time.new_token(), None
    if message.has_link:
        renewed = {"id": message.one_time_token_id, "token_hash": one_time.hash_token(token)}
        if tx.run("renew_undo_token", **renewed):
            sealed = latchkey.sealer.seal_json({"token": token}, id)
    tx.run("copy_notice", id=message.id, new_id=id, secret=sealed)
    return id


def _request_of(message: Any) -> dict[str, Any]:
    """Return the languages and the browser of the first request, which are not the administrator's."""
    return {name: message.variables.get(name) for name in ("languages", "user_agent")}
