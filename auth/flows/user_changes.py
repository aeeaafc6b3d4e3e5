from typing import Any

from flask import g

from auth.context import latchkey
from auth.flows import outgoing
from auth.flows.reauthentication import lock_caller, reauthenticate
from auth.passwords.policy import check_strength
from auth.web import audit, guard
from auth.web.errors import ApiError
from sql import Transaction

_SENSITIVE = ("new_email", "new_phone", "password_hash")


def change_user(body: dict[str, Any], link: dict[str, str | None]) -> Any:
    """Apply a `UserChange` body to the caller. `link` has the columns of the link that confirms an email."""
    change, known, authentication = _check(body)
    addresses = [address for address in (change["new_email"], change["new_phone"]) if address]
    with latchkey.db.transaction() as tx:
        if addresses:
            _refuse_taken(tx, change)
        for address in addresses:
            outgoing.take_quota(tx, address)
        caller = lock_caller(tx, **authentication)
        if change["password_hash"]:
            _end_other_access(tx, caller, known.password_hash)
        user = tx.one("change_user", user_id=caller.id, **change)
        for address in addresses:
            _send_confirmation(tx, caller, address, link)
        if change["password_hash"] and caller.email:
            outgoing.notify(tx, caller.id, caller.email, "password_changed")
        _record(tx, caller, change)
    return user


def _check(body: dict[str, Any]) -> tuple[dict[str, Any], Any, dict[str, Any]]:
    """Return the parameters of `change_user`, the caller's row, and the parameters of `lock_caller`."""
    change = {"user_metadata": body.get("data")} | dict.fromkeys(_SENSITIVE)
    email, phone, password = body.get("email"), body.get("phone"), body.get("password")
    if not email and not phone and password is None:
        return change, None, {"reauthenticated": True}
    known = guard.live_caller()
    change["new_email"] = None if email == known.email else email
    change["new_phone"] = None if phone == known.phone else phone
    adds_address = bool(change["new_email"] or change["new_phone"])
    # A user without an address could not get a code.
    needs_proof = adds_address and bool(known.email or known.phone)
    if password is None:
        reauthenticated = not needs_proof or reauthenticate(known, body, needs_proof=True)
        return change, known, {"reauthenticated": reauthenticated, "needs_proof": needs_proof}
    check_strength(latchkey.settings, password, [known.email, known.phone])
    # A request that the queue refuses must not have spent its code.
    with latchkey.passwords.queue():
        # First, or an old session could guess the current password by `same_password`.
        reauthenticated = reauthenticate(known, body, needs_proof=needs_proof)
        if known.password_hash is not None and latchkey.passwords.check(password, known.password_hash):
            raise ApiError("same_password", "password: must differ from the current one")
        change["password_hash"] = latchkey.passwords.hash(password)
    return change, known, {"reauthenticated": reauthenticated, "needs_proof": needs_proof}


def _refuse_taken(tx: Transaction, change: dict[str, Any]) -> None:
    # An address that is taken later is refused when it is confirmed.
    addresses = {"email": change["new_email"], "phone": change["new_phone"]}
    taken = tx.one("select_taken_address", user_id=guard.caller_id(), **addresses)
    if taken:
        raise ApiError("email_exists" if taken.is_email else "phone_exists")


def _end_other_access(tx: Transaction, caller: Any, checked_password_hash: str | None) -> None:
    # Another request has changed the password that this one was checked against.
    if caller.password_hash != checked_password_hash:
        raise ApiError("session_not_found")
    kept = g.caller.session_id
    tx.run("end_user_sessions", user_id=caller.id, kept_session_id=kept, reason="password_changed")
    tx.run("void_tokens", user_id=caller.id)


def _send_confirmation(tx: Transaction, caller: Any, address: str, link: dict[str, str | None]) -> None:
    by_email, message = "@" in address, outgoing.Message(address)
    purpose = "email_change" if by_email else "phone_change"
    columns = link if by_email else {}
    message.write_token(tx, caller.id, purpose, session_id=g.caller.session_id, **columns)
    message.write(tx, caller.id, purpose, redirect_to=columns.get("redirect_to"))


def _record(tx: Transaction, caller: Any, change: dict[str, Any]) -> None:
    acts = [
        "user_changed" if change["user_metadata"] is not None else None,
        "password_changed" if change["password_hash"] else None,
        "email_change_requested" if change["new_email"] else None,
        "phone_change_requested" if change["new_phone"] else None,
    ]
    details = {"new_email": change["new_email"], "new_phone": change["new_phone"]}
    audit.record(tx, caller.id, caller.email, acts, ["user.updated"], **details)
