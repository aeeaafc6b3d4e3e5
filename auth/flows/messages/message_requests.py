"""Requests for a message. The outcome does not reveal whether one was sent, as anyone may enter any
address."""

from collections.abc import Mapping
from typing import Any

from auth.flows import admission
from auth.flows.admin import targets
from auth.flows.admission import may_become
from auth.flows.links.targets import requested_target
from auth.flows.messages import outgoing
from auth.flows.sign_in import waiting
from auth.flows.sign_in.reauthentication import admit_caller, code_address
from auth.flows.sign_up.sign_up import create_addressed_user
from auth.web import audit
from auth.web.asked import Asked
from auth.web.errors import ApiError
from sql import Transaction, acts, queries


def request_message(asked: Asked, purpose: str, body: dict[str, Any], *, target_id: str | None = None) -> str:
    """Send a message and return its id.

    Every address runs the same statements and writes a message, perhaps of kind `none`. Only an
    administrator, who acts on the user `target_id`, gets a refusal with the reason.
    """
    email, phone = body.get("email"), body.get("phone")
    admission.check_channel(asked, email, phone)
    address, link = email or body["phone"], {"redirect_to": requested_target(asked, purpose, body)}
    message = outgoing.Message(asked, address, channel=body.get("channel"))
    new_id, refusal = None, dict[str, Any]()
    if body.get("create_user") and not asked.settings.disable_signup:
        try:
            new_id = may_become(asked, email, phone, data=body.get("data"))
        except ApiError:
            # Only for the audit log: the client must not learn that the address is free.
            refusal = asked.noted.subject["details"] if asked.noted.subject else {}
    take = outgoing.take_quota if target_id else outgoing.count
    has_quota = take(asked, address).refused_by is None
    with targets.act(asked) if target_id else acts.begin(asked.db) as tx:
        created_id = create_addressed_user(tx, body, new_id if has_quota else None, "message")
        if target_id:
            targets.lock(asked, tx, target_id)
        browser = {"browser_hash": body.get("browser_hash")}
        is_other = purpose not in ("signup", "sms_signup")
        # A stranger may have signed up, and resend that code to the owner, who waits for this one.
        other: dict[str, Any] = {"address": address, "is_repeated": is_other}
        queries.dispute_sign_up(tx, **other, password_hash=None, user_metadata={})
        user = queries.lock_recipient(tx, purpose=purpose, email=email, phone=phone, **browser)
        user_id, is_due = user and user.id, has_quota and user is not None and user.is_due
        if target_id and not (is_due and user_id == target_id):
            raise ApiError("undue.validation_failed")
        bound_to = {"code_challenge": body.get("code_challenge"), **browser, **waiting.asker(asked)}
        write_requested(tx, message, purpose, user, link, bound_to, is_due=is_due)
        done = ["user_created" if created_id else None, "message_requested"]
        events = ["user.created" if created_id else None]
        details = {"by": "message" if created_id else None, "purpose": purpose, "is_sent": is_due}
        # The hook was asked about a new user. Its answer does not concern an existing one.
        details |= refusal if user is None else {}
        audit.record(tx, user_id, email, done, events, **details)
    if has_quota and not is_due:
        why = "the user of this address is banned or needs none" if user else "no user has this address"
        outgoing.tell_developer(asked, address, f"not sent: {why}")
    return message.id


def write_requested(
    tx: Transaction,
    message: outgoing.Message,
    purpose: str,
    user: Any,
    link: dict[str, str | None],
    bound_to: dict[str, Any],
    *,
    is_due: bool = True,
    **variables: Any,
) -> None:
    """Write a message and its token for a row of `lock_recipient`; one of kind `none` unless it is due."""
    user_id = user and user.id
    own = {"session_id": user and user.session_id, "password_hash": user and user.own_password_hash}
    message.write_token(tx, user_id if is_due else None, purpose, **link, **bound_to, **own)
    kind = purpose.replace("sms_signup", "signup") if is_due else "none"
    message.write(tx, user_id, kind, secret=is_due, **link | variables | (user.sign_up if user else {}))


def send_reauthentication_code(
    asked: Asked, known: Any, bound_to: Mapping[str, bytes | None] | None = None
) -> str:
    """Send the caller, a row of `select_caller`, a code and return the message's id."""
    address = code_address(known)
    if not address:
        raise ApiError("reauthentication.validation_failed")
    message, user_id = outgoing.Message(asked, address, link=False), asked.caller.user_id
    quota = outgoing.take_quota(asked, address)
    with acts.on(asked.db, asked.caller.user_id) as tx:
        admit_caller(asked, tx)
        own = {"session_id": asked.caller.session_id, **(bound_to or {})}
        message.write_token(tx, user_id, "reauthentication", **own)
        message.write(tx, user_id, "reauthentication")
        details = {"purpose": "reauthentication", "is_sent": True}
        audit.record(tx, user_id, None, ["message_requested"], [], **details)
    outgoing.add_quota_headers(asked, quota)
    return message.id
