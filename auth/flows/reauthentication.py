"""Reauthentication: older sessions need the current password or a code for sensitive changes (ASVS 3.7.1)."""

from typing import Any

from flask import g

from auth.context import latchkey
from auth.flows.password_attempts import begin_attempt, check_attempt
from auth.web import guard
from auth.web.errors import ApiError
from sql import Transaction

_CREDENTIALS = "current_password, or nonce with the code that GET /reauthenticate sends"


def reauthenticate(known: Any, body: dict[str, Any]) -> bool:
    """Check the current password or code of a body. Return False, unchecked, for a new session."""
    age = latchkey.settings.reauthentication_age
    if age is None or known.session_age < age:
        return False
    if "current_password" in body:
        _check_current_password(body["current_password"], known)
    elif "nonce" in body:
        _spend_nonce(body["nonce"], known)
    else:
        raise _needed(_CREDENTIALS)
    return True


def lock_caller(tx: Transaction, reauthenticated: bool, needed: str = _CREDENTIALS) -> Any:
    """Lock and return the caller's row. Raises `ApiError` if the session ended or needs reauthentication."""
    caller = guard.admit(tx.one("lock_caller", reauthenticated=reauthenticated, **guard.caller()))
    if caller.state == "reauthentication_needed":
        raise _needed(needed)
    return caller


def _check_current_password(password: str, known: Any) -> None:
    address = {"email": known.email, "phone": None if known.email else known.phone}
    with latchkey.passwords.queue():
        attempt = begin_attempt(**address)
        matches = check_attempt(attempt, password)
    if not matches:
        raise ApiError("current_password_invalid", "current_password: must be the user's password")
    origin = {"network": g.client["network"], "is_stranger": attempt.is_stranger}
    latchkey.db.one("finish_password_attempt", **address, **origin)


def _spend_nonce(nonce: str, known: Any) -> None:
    address = known.email if known.email_confirmed else known.phone
    spent = address and latchkey.db.one(
        "spend_reauthentication_code",
        user_id=guard.caller_id(),
        address=address,
        code_mac=latchkey.codes.mac(address, nonce),
    )
    if not spent:
        raise ApiError("reauthentication_not_valid", "nonce: must be the code that GET /reauthenticate sent")


def _needed(what: str) -> ApiError:
    return ApiError("reauthentication_needed", f"give {what}: this session is too old for this change")
