"""Invitations by mail, and again until the user accepts."""

from typing import Any

from auth.account.sign_up import create_addressed_user
from auth.context import latchkey
from auth.messages import outgoing
from auth.sign_in.arrivals import requested_target
from auth.tokens import one_time
from auth.web import audit, targets
from auth.web.errors import ApiError
from sql import Transaction


def invite(body: dict[str, Any]) -> tuple[str, str]:
    """Invite the user of an `Invitation` body. Return the user object as JSON, and the message's id."""
    settings, email, redirect_to = latchkey.settings, body["email"], requested_target("invite", body)
    message = outgoing.Message(email, code=False, lifetime=one_time.INVITATION_LIFETIME)
    # The address first, so that an invitation refused by its window does not count for the service.
    windows = [(f"invite {email}", settings.rate_limit_invite_per_address)]
    windows.append(("invite", settings.rate_limit_invite))
    with targets.act() as tx:
        known = tx.one("select_user_of_address", address=email)
        if known and not known.is_invited:
            raise ApiError("email_exists")
        quota = outgoing.take_quota(tx, email, windows)
        user_id, is_created = _invited_user(tx, body)
        message.write_token(tx, user_id, "invite", redirect_to=redirect_to)
        message.write(tx, user_id, "invite", redirect_to=redirect_to)
        acts, events = ["user_created" if is_created else None, "invited"], ["user.created"]
        made_by = "invitation" if is_created else None
        audit.record(tx, user_id, email, acts, events if is_created else [], by=made_by)
        user = tx.one("select_any_user", id=user_id).user_object
    outgoing.note_quota(quota)
    return user, message.id


def _invited_user(tx: Transaction, body: dict[str, Any]) -> tuple[str, bool]:
    app_metadata = body["options"].get("data", {})
    created_id = create_addressed_user(tx, body, "invitation", app_metadata=app_metadata, is_invited=True)
    if created_id:
        return created_id, True
    user = tx.one("lock_user_by_email", email=body["email"])
    if user is None or not user.is_invited:
        raise ApiError("email_exists")
    targets.check(tx, user.id, user)
    tx.run("renew_invitation", user_id=user.id, user_metadata=body["data"], app_metadata=app_metadata)
    return user.id, False
