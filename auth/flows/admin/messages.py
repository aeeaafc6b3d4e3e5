"""Invitations, and messages that an administrator sends again, without seeing the link or the code."""

import uuid
from functools import partial

from auth.core import constants
from auth.core.json_bodies import JsonObject
from auth.core.text import names
from auth.core.tokens import one_time
from auth.flows import admission
from auth.flows.admin import targets
from auth.flows.facts import PersonFacts
from auth.flows.links.targets import requested_target
from auth.flows.messages import outgoing
from auth.flows.messages.message_requests import recipient_of, write_requested
from auth.flows.sign_up.sign_up import create_addressed_user, dispute
from auth.rules.users import gives_way, has_open_invitation, is_banned
from auth.web import audit
from auth.web.asked import Asked
from auth.web.errors import ApiError, found, unavailable
from auth.web.input import canonical_id
from sql import Transaction, acts, queries
from sql.acts import Act

# Messages that users request. Resending one creates another link or code.
REQUESTED = {"signup", "magiclink", "recovery", "sms", "email_change", "phone_change"}


def invitation(email: str, groups: list[str]) -> JsonObject:
    """Return the `Invitation` body of an address and the names of groups."""
    return {"email": email, "data": {}, "options": {"data": {"groups": groups} if groups else {}}}


def invite(asked: Asked, body: JsonObject) -> tuple[str, str]:
    """Invite the user of an `Invitation` body. Return the user object as JSON, and the message's id."""
    email, redirect_to = body["email"], requested_target(asked, "invite", body)
    holder_id = queries.find_holder(asked.db, address=email).id
    before = queries.select_person(asked.db, user_id=holder_id, session_id=None)
    is_invited = before is not None and not gives_way(before)
    if before and is_invited and not has_open_invitation(before):
        raise ApiError("email_exists")
    # The invited user may be deleted meanwhile. With a hook, which was asked about no new user, that is 503.
    new_id = None if is_invited and asked.parts.admission_hooks else str(uuid.uuid4())
    if new_id:
        admission.ask_hook(asked, new_id, email, None, data=body["data"])
    quota = outgoing.take_quota(asked, email, outgoing.windows_of_operators(asked, email))

    def insert(act: Act) -> str | None:
        own = {"app_metadata": body["options"].get("data", {}), "is_invited": True}
        return create_addressed_user(act, body, new_id, "invitation", **own)

    find_holder = partial(queries.find_holder, address=email)
    # The constraint decides who gets the address.
    with acts.on_found(asked.db, find_holder, before=insert) as (act, holders):
        asked.claim(act)
        holder = act.read(queries.select_person, user_id=next(iter(holders), None), session_id=None)
        if holder is None:
            raise unavailable()
        user_id = holder.id
        if user_id != new_id:
            targets.make_way(act, holders)
            user_id = insert(act) or _renew_invitation(asked, act, holder, body)
        is_created = user_id == new_id
        administrator = asked.administrator
        inviter = administrator and (names.person(administrator.name) or administrator.email)
        message_id = _write_invitation(asked, act, user_id, email, redirect_to, inviter=inviter)
        entries = ["user_created" if is_created else None, "invited"]
        events, made_by = ["user.created" if is_created else None], "invitation" if is_created else None
        audit.record(act, user_id, email, entries, events, by=made_by)
        user = found(queries.select_any_user(act, id=user_id), "user_not_found").user_object
        targets.check_actor(asked, act)
    outgoing.add_quota_headers(asked, quota)
    return user, message_id


def invite_again(asked: Asked, email: str | None) -> None:
    """Send an open invitation to its address again. Without an open one, no user is created."""
    holder_id = queries.find_holder(asked.db, address=email or "").id
    user = queries.select_person(asked.db, user_id=holder_id, session_id=None)
    if email is None or user is None or not has_open_invitation(user):
        raise ApiError("undue.validation_failed")
    invite(asked, invitation(email, []))


def _renew_invitation(asked: Asked, act: Act, user: PersonFacts, body: JsonObject) -> str:
    if not has_open_invitation(user):
        raise ApiError("email_exists")
    targets.check(asked, act, user)
    own = {"user_metadata": body["data"], "app_metadata": body["options"].get("data", {})}
    queries.renew_invitation(act, user_id=user.id, **own)
    return user.id


def _write_invitation(
    asked: Asked, tx: Transaction, user_id: str, email: str, redirect_to: str | None, **variables: object
) -> str:
    message = outgoing.Message(asked, email, carries=["link"], lifetime=constants.INVITATION_LIFETIME)
    message.write_token(tx, user_id, "invite", redirect_to=redirect_to)
    message.write(tx, user_id, "invite", redirect_to=redirect_to, **variables)
    return message.id


def send_recovery(asked: Asked, user_id: str, email: str | None) -> None:
    """Send the link and code of a recovery to the user of an address."""
    if not email:
        raise ApiError("undue.validation_failed")
    admission.check_channel(asked, email, None)
    message, target = outgoing.Message(asked, email), requested_target(asked, "recovery", {})
    outgoing.take_quota(asked, email)
    with targets.on(asked, user_id) as (act, _):
        recipient = recipient_of(act, "recovery", email)
        if recipient.user_id != user_id or not recipient.is_due:
            raise ApiError("undue.validation_failed")
        dispute(act, recipient.holder)
        columns = outgoing.TokenColumns(redirect_to=target, **asked.device)
        write_requested(act, message, "recovery", user_id, columns)
        details = {"purpose": "recovery", "is_sent": True}
        audit.record(act, user_id, email, ["message_requested"], [], **details)


def find(asked: Asked, message_id: str) -> "queries.SelectMessage":
    """Return the row of an email or SMS that can be sent again."""
    id = canonical_id(message_id, "message.not_found")
    message = found(queries.select_message(asked.db, id=id), "message.not_found")
    if message.is_for_administrator:
        raise targets.refusal(asked, message.user_id)
    if why := _obstacle(message):
        raise ApiError("message.validation_failed", why=why)
    return message


def _obstacle(message: "queries.SelectMessage") -> str | None:
    if message.outcome == "waiting":
        return None
    if message.channel == "logout":
        return "the end of a session is told to an application for an hour only"
    if not message.has_user:
        return "its user no longer exists"
    if message.kind == "reauthentication":
        return "only the user can request this code"
    if message.has_link and message.outcome == "sent":
        return "it was delivered, and a new one would void its link"
    return None


def resend(asked: Asked, message_id: str) -> None:
    """Send an email or SMS again; send a waiting one immediately."""
    message = find(asked, message_id)
    if message.outcome == "waiting":
        with targets.begin(asked) as act:
            if message.has_user:
                act.lock_users([message.user_id])
                targets.read(asked, act, message.user_id)
            queries.hurry_message(act, id=message.id)
            return
    quota = outgoing.take_quota(asked, message.recipient)
    # The user may have become an administrator.
    with targets.on(asked, message.user_id) as (act, user):
        # The message keeps the languages and the browser of the first request.
        variable_names = ("languages", "user_agent", "inviter", "channel")
        variables = {name: message.variables.get(name) for name in variable_names}
        if message.kind in REQUESTED:
            _request_again(asked, act, message, variables)
        elif message.kind == "invite":
            _invite_again(asked, act, user, message, variables)
        else:
            _notify_again(asked, act, message)
        audit.record(act, message.user_id, None, ["message_resent"], [], kind=message.kind)
    outgoing.add_quota_headers(asked, quota)


def _request_again(
    asked: Asked, tx: Transaction, message: "queries.SelectMessage", variables: JsonObject
) -> None:
    purpose = "sms_signup" if (message.kind, message.channel) == ("signup", "sms") else message.kind
    email, phone = (message.recipient if message.channel == each else None for each in ("email", "sms"))
    admission.check_channel(asked, email, phone)
    recipient = recipient_of(tx, purpose, message.recipient)
    # The address may belong to another user now.
    if recipient.user_id != message.user_id or not recipient.is_due:
        raise ApiError("undue.validation_failed")
    again = outgoing.Message(asked, message.recipient)
    columns = outgoing.TokenColumns(
        redirect_to=message.variables.get("redirect_to"),
        code_challenge=message.code_challenge,
        browser_hash=message.browser_hash,
        user_agent=message.user_agent,
        ip=message.ip,
    )
    write_requested(tx, again, purpose, message.user_id, columns, **variables)


def _invite_again(
    asked: Asked, tx: Transaction, user: PersonFacts, message: "queries.SelectMessage", variables: JsonObject
) -> None:
    is_due = user.email == message.recipient and has_open_invitation(user)
    if not is_due or is_banned(user):
        raise ApiError("undue.validation_failed")
    redirect_to = message.variables.get("redirect_to")
    _write_invitation(asked, tx, user.id, message.recipient, redirect_to, **variables)


def _notify_again(asked: Asked, tx: Transaction, message: "queries.SelectMessage") -> None:
    """Copy a notice. If its undo link was never sent, the copy gets a new one."""
    id, token, sealed = str(uuid.uuid4()), one_time.new_token(), None
    # The link may have been used, or have expired, before its user was locked.
    present = queries.select_message(tx, id=message.id)
    if present and present.has_link:
        token_hash = one_time.hash_token(token)
        if queries.renew_undo_token(tx, id=message.one_time_token_id, token_hash=token_hash):
            sealed = asked.parts.sealer.seal_json({"token": token}, id)
    queries.copy_notice(tx, id=message.id, new_id=id, secret=sealed)
