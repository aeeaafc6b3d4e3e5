"""What administrators do with users: create them, change them, make them administrators."""

import math
from typing import Any

from auth.context import latchkey
from auth.web.errors import ApiError
from sql import Transaction

_ADDRESSES = ("email", "phone")
_SET = {"email": "set_email", "phone": "set_phone"}
_CONFIRM = {"email": "confirm_email", "phone": "confirm_phone"}


def create_user(body: dict[str, Any], password_hash: str | None) -> str:
    """Create a user as a `NewUser` body describes it, and return the user object as JSON."""
    phone = body.get("phone")
    role = body.get("role", "authenticated")
    with latchkey.db.transaction() as tx:
        user_id = tx.one(
            "create_user",
            email=body["email"],
            phone=phone,
            password_hash=password_hash,
            role=role,
            user_metadata=body["user_metadata"],
            app_metadata=body["app_metadata"],
            email_confirm=body["email_confirm"],
            phone_confirm=phone is not None and body["phone_confirm"],
        ).id
        for kind in _ADDRESSES:
            if kind in body:
                tx.run("write_address_identity", user_id=user_id, provider=kind, address=body[kind])
        details = {"by": "administrator", "role": role}
        tx.run(
            "record_acts",
            user_id=user_id,
            email=body["email"],
            acts=["user_created"],
            events=["user.created"],
            details=details,
        )
        return tx.one("select_any_user", id=user_id).user_object


def update_user(user_id: str, body: dict[str, Any], password_hash: str | None) -> str:
    """Change a user as an `AnyUserChange` body says, and return the user object as JSON. Raises `ApiError`.

    A new address is unconfirmed unless the body confirms it. A new password, a new email and a ban end all
    sessions.
    """
    with latchkey.db.transaction() as tx:
        before = tx.one("lock_any_user", id=user_id)
        if before is None:
            raise ApiError("user_not_found")
        # Confirming the email of a sign-up vouches for the email's owner, not for what was set before.
        confirms_email = bool(body.get("email", before.email)) and _confirmation(body, "email") is not None
        is_first_proof = before.is_unproved_sign_up and confirms_email
        if is_first_proof:
            tx.run(
                "drop_unproved", user_id=user_id, provider="email", drops_email=False, keeps_password=False
            )
        if reason := _end_reason(before, body, is_first_proof):
            tx.run("end_user_sessions", user_id=user_id, kept_session_id=None, reason=reason)
            tx.run("void_tokens", user_id=user_id)
        _set_address(tx, user_id, "email", body, before.email)
        _set_address(tx, user_id, "phone", body, None if is_first_proof else before.phone)
        if "ban_duration" in body:
            seconds = body["ban_duration"]
            tx.run("ban_user", id=user_id, seconds=None if seconds == math.inf else seconds)
        tx.run(
            "update_any_user",
            id=user_id,
            password_hash=password_hash,
            role=body.get("role"),
            user_metadata=body["user_metadata"],
            app_metadata=body["app_metadata"],
        )
        after = tx.one("lock_any_user", id=user_id)
        acts = _acts(before, after, sets_password="password" in body, sets_ban="ban_duration" in body)
        details = _details(before, after, body)
        tx.run(
            "record_acts",
            user_id=user_id,
            email=after.email,
            acts=acts,
            events=["user.updated"],
            details=details,
        )
        return tx.one("select_any_user", id=user_id).user_object


def _end_reason(before: Any, body: dict[str, Any], is_first_proof: bool) -> str | None:
    """Return why all sessions end, or None when they go on."""
    if body.get("ban_duration", 0) > 0:
        return "banned"
    if "password" in body:
        return "password_changed"
    if body.get("email", before.email) != before.email:
        return "email_changed"
    return "address_proved" if is_first_proof else None


def _confirmation(body: dict[str, Any], kind: str) -> Any:
    """Return when an address was confirmed, as Postgres reads it, or None."""
    if f"{kind}_confirmed_at" in body:
        return body[f"{kind}_confirmed_at"]
    return "now" if body.get(f"{kind}_confirm") else None


def _set_address(tx: Transaction, user_id: str, kind: str, body: dict[str, Any], old: str | None) -> None:
    if kind in body and body[kind] != old:
        tx.run(_SET[kind], id=user_id, **{kind: body[kind]})
        tx.run("write_address_identity", user_id=user_id, provider=kind, address=body[kind])
    if f"{kind}_confirmed_at" in body or body.get(f"{kind}_confirm"):
        tx.run(_CONFIRM[kind], id=user_id, confirmed_at=_confirmation(body, kind))


def _acts(before: Any, after: Any, *, sets_password: bool, sets_ban: bool) -> list[str | None]:
    is_email_same = before.email_confirmed_at == after.email_confirmed_at
    is_phone_same = before.phone_confirmed_at == after.phone_confirmed_at
    is_metadata_same = (before.user_metadata, before.app_metadata) == (
        after.user_metadata,
        after.app_metadata,
    )
    acts = [
        None if is_metadata_same else "user_changed",
        "password_changed" if sets_password else None,
        "email_changed" if before.email != after.email else None,
        "phone_changed" if before.phone != after.phone else None,
        None if is_email_same else "email_confirmed" if after.email_confirmed_at else "email_unconfirmed",
        None if is_phone_same else "phone_confirmed" if after.phone_confirmed_at else "phone_unconfirmed",
        "role_changed" if before.role != after.role else None,
        "banned" if sets_ban and after.banned_until else None,
        "unbanned" if before.banned_until and not after.banned_until else None,
    ]
    return acts


def _details(before: Any, after: Any, body: dict[str, Any]) -> dict[str, Any]:
    details = {"banned_until": after.banned_until} if "ban_duration" in body else {}
    for name in (*_ADDRESSES, "role"):
        old, new = getattr(before, name), getattr(after, name)
        details |= {f"old_{name}": old} if old and new and old != new else {}
    return details | ({"role": after.role} if before.role != after.role else {})
