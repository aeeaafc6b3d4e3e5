"""What users change of themselves: metadata, password, email and phone."""

from dataclasses import dataclass
from typing import Any

from flask import g

from auth.context import latchkey
from auth.flows import outgoing
from auth.flows.reauthentication import lock_caller, reauthenticate
from auth.passwords.policy import check_strength
from auth.web import guard
from auth.web.errors import ApiError
from sql import Transaction


@dataclass(frozen=True)
class Change:
    """What the caller changes, checked as far as it can be before the row is locked. None changes nothing."""

    user_metadata: dict[str, Any] | None
    email: str | None = None
    phone: str | None = None
    password_hash: str | None = None
    # The hash that the new password was compared with.
    checked_password_hash: str | None = None
    reauthenticated: bool = False

    @property
    def is_sensitive(self) -> bool:
        return bool(self.email or self.phone or self.password_hash)


def check_change(body: dict[str, Any]) -> Change:
    """Check a change against the caller, reauthenticate if it is sensitive, and hash a new password.

    Raises `ApiError`.
    """
    email, phone, password = body.get("email"), body.get("phone"), body.get("password")
    if not email and not phone and password is None:
        return Change(body.get("data"))
    known = guard.admit(latchkey.db.one("select_caller", **guard.caller()))
    # An address that stays the same is no change.
    addresses = {
        "email": None if email == known.email else email,
        "phone": None if phone == known.phone else phone,
    }
    if password is None:
        reauthenticated = any(addresses.values()) and reauthenticate(known, body)
        return Change(body.get("data"), **addresses, reauthenticated=reauthenticated)
    check_strength(latchkey.settings, password, [known.email, known.phone])
    # A request that is refused here must not have spent its code.
    with latchkey.passwords.queue():
        # Reauthentication comes first, or an old session could guess the current password by changing it.
        reauthenticated = reauthenticate(known, body)
        password_hash = _new_hash(password, known.password_hash)
    return Change(
        body.get("data"),
        **addresses,
        password_hash=password_hash,
        checked_password_hash=known.password_hash,
        reauthenticated=reauthenticated,
    )


def change_user(change: Change, link: dict[str, str | None]) -> Any:
    """Change the caller's metadata and password, make a new email or phone pending, and return the row.

    `link` has the `redirect_to` and `code_challenge` of the link that confirms the email. Raises `ApiError`,
    and then changes nothing.
    """
    to_email = outgoing.Message(change.email) if change.email else None
    to_phone = outgoing.Message(change.phone) if change.phone else None
    with latchkey.db.transaction() as tx:
        if to_email or to_phone:
            _refuse_taken(tx, change)
            _take_quota(tx, change)
        caller = lock_caller(tx, change.reauthenticated or not change.is_sensitive)
        if change.password_hash:
            _end_other_access(tx, caller, change.checked_password_hash)
        user = tx.one(
            "change_user",
            user_id=caller.id,
            user_metadata=change.user_metadata,
            password_hash=change.password_hash,
            new_email=change.email,
            new_phone=change.phone,
        )
        if to_email:
            _write(tx, to_email, "email_change", **link)
        if to_phone:
            _write(tx, to_phone, "phone_change")
        if change.password_hash and caller.email:
            notice = outgoing.Message(caller.email, link=False, code=False)
            tx.run("write_message", **notice.message_row(caller.id, "password_changed"))
        _record(tx, caller, change)
    return user


def _new_hash(password: str, password_hash: str | None) -> str:
    if password_hash is not None and latchkey.passwords.check(password, password_hash):
        raise ApiError("same_password", "password: must differ from the current one")
    return latchkey.passwords.hash(password)


def _refuse_taken(tx: Transaction, change: Change) -> None:
    """Refuse an address that another user has. One that is taken later is refused when it is confirmed."""
    taken = tx.one("select_taken_address", email=change.email, phone=change.phone, user_id=guard.caller_id())
    if taken:
        raise ApiError("email_exists" if taken.is_email else "phone_exists")


def _take_quota(tx: Transaction, change: Change) -> None:
    for address, error_code in (
        (change.email, "over_email_send_rate_limit"),
        (change.phone, "over_sms_send_rate_limit"),
    ):
        if address:
            outgoing.take_quota(tx, outgoing.quota(address), error_code)


def _end_other_access(tx: Transaction, caller: Any, checked_password_hash: str | None) -> None:
    """End the caller's other sessions, and void links and codes."""
    # The new password was compared with a hash that another request has replaced since.
    if caller.password_hash != checked_password_hash:
        raise ApiError("session_not_found")
    kept, reason = g.caller.session_id, "password_changed"
    tx.run("end_user_sessions", user_id=caller.id, kept_session_id=kept, reason=reason)
    tx.run("void_tokens", user_id=caller.id)


def _write(tx: Transaction, message: outgoing.Message, purpose: str, **link: str | None) -> None:
    user_id, redirect_to = guard.caller_id(), link.get("redirect_to")
    tx.run("write_token", **message.token_row(user_id, purpose, session_id=g.caller.session_id, **link))
    tx.run("write_message", **message.message_row(user_id, purpose, redirect_to=redirect_to))


def _record(tx: Transaction, caller: Any, change: Change) -> None:
    acts = [
        "user_changed" if change.user_metadata is not None else None,
        "password_changed" if change.password_hash else None,
        "email_change_requested" if change.email else None,
        "phone_change_requested" if change.phone else None,
    ]
    details = {"new_email": change.email, "new_phone": change.phone}
    tx.run(
        "record_acts",
        user_id=caller.id,
        email=caller.email,
        acts=acts,
        events=["user.updated"],
        details=details,
    )
