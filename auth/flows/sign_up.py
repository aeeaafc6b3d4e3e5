"""Signing up with an address and a password."""

from typing import Any

from flask import g

from auth.context import latchkey
from auth.flows import outgoing
from auth.web.edge import client
from auth.web.errors import ApiError
from auth.web.input import checked_redirect


def sign_up_confirmed(body: dict[str, Any], password_hash: str) -> Any:
    """Create a user with a confirmed address, and return the row of its session. Raises `ApiError`."""
    draft = _draft(body, password_hash)
    with latchkey.db.transaction() as tx:
        user = tx.one("insert_sign_up", is_confirmed=True, **draft)
        if user.is_created:
            session_id = tx.one("open_session", user_id=user.id, method="password", **client()).id
            tx.run(
                "record_acts",
                user_id=user.id,
                email=body.get("email"),
                acts=["user_created", "signed_in"],
                events=["user.created", "auth.login"],
                details={"by": "signup", "method": "password", "session_id": session_id},
            )
            return tx.one("select_new_session", session_id=session_id)
        owner = tx.one("select_address_owner", address=_address(body))
        tx.run("record_refused_sign_up", user_id=owner and owner.id)
    raise _already_exists(body)


def sign_up_unconfirmed(body: dict[str, Any], password_hash: str) -> Any:
    """Create a user who has to confirm the address, send the link or code for it, and return the user's row.

    Where only confirmed users may sign in, a taken address is answered like a free one: the same statements
    run in one transaction, and each case writes one message. Elsewhere a taken address raises `ApiError`.
    """
    address, settings = _address(body), latchkey.settings
    is_hidden = settings.email_confirm_required if "email" in body else settings.phone_confirm_required
    draft, message = _draft(body, password_hash), outgoing.Message(address)
    redirect_to = checked_redirect(body)
    with latchkey.db.transaction() as tx:
        has_quota = tx.one("take_from_quota", **outgoing.quota(address)).seconds_left == 0
        # Without quota the new sign-up could not be confirmed, so the old one stays.
        tx.run("delete_unused_sign_up", address=address, is_replaced=is_hidden and has_quota)
        user = tx.one("insert_sign_up", is_confirmed=False, **draft)
        owner = tx.one("select_address_owner", address=address)
        owner_id = owner and owner.id

        kind = _kind(body, user, owner, is_hidden) if has_quota else "none"
        # The mail that tells an owner of an attempt has no link.
        has_secrets = kind in ("signup", "sms")
        link = {"redirect_to": redirect_to, "code_challenge": body.get("code_challenge")}
        purpose = "signup" if "email" in body else "sms_signup"
        tx.run("write_token", **message.token_row(owner_id if has_secrets else None, purpose, **link))
        row = message.message_row(owner_id, kind, redirect_to=redirect_to)
        tx.run("write_message", **row if has_secrets else row | {"message_secret": None, "token_id": None})

        if user.is_created:
            tx.run(
                "record_acts",
                user_id=user.id,
                email=body.get("email"),
                acts=["user_created"],
                events=["user.created"],
                details={"by": "signup", "method": "password"},
            )
        else:
            tx.run("record_refused_sign_up", user_id=owner_id)
    if not user.is_created and not is_hidden:
        raise _already_exists(body)
    return user


def _kind(body: dict[str, Any], user: Any, owner: Any, is_hidden: bool) -> str:
    """Return the kind of message that a sign-up sends."""
    if user.is_created:
        return "signup" if "email" in body else "sms"
    # A concurrent request made an unused sign-up, so nobody tried to take another user's address.
    is_attempt = is_hidden and "email" in body and owner is not None and not owner.is_unused
    return "signup_attempt" if is_attempt else "none"


def _address(body: dict[str, Any]) -> str:
    return body.get("email") or body["phone"]


def _draft(body: dict[str, Any], password_hash: str) -> dict[str, Any]:
    return {
        "email": body.get("email"),
        "phone": body.get("phone"),
        "password_hash": password_hash,
        "user_metadata": body["data"],
        "user_agent": g.client["user_agent"],
    }


def _already_exists(body: dict[str, Any]) -> ApiError:
    address = "email address" if "email" in body else "phone number"
    return ApiError("user_already_exists", address=address)
