"""Reauthentication: older sessions need the current password or a code for sensitive changes (ASVS 3.7.1).

A proof is an authentication of the last 15 minutes. Adding or removing a way to sign in needs one.
"""

from typing import Any

from flask import g

from auth.context import latchkey
from auth.flows.factor_codes import check_totp
from auth.flows.password_attempts import begin_attempt, check_attempt
from auth.web import audit, guard
from auth.web.errors import ApiError
from sql import Transaction

# Seconds for which an authentication counts as a proof, if `AUTH_REAUTHENTICATION_AGE` does not say fewer.
_PROOF_AGE = 900
# Seconds for which one counts on the pages at least: they ask for it on another page, before the change.
_LEAST_ON_PAGES = 300
_CREDENTIALS = (
    "current_password, factor_code of an authenticator app, or nonce with the code that GET /reauthenticate"
    " sends"
)


def is_needed(known: Any, *, needs_proof: bool = False) -> bool:
    """Whether the session of a caller, a row of `select_caller`, is too old for the requested change."""
    most, age = _most(needs_proof), known.proof_age if needs_proof else known.authentication_age
    return most is not None and (age is None or age >= most)


def code_address(known: Any) -> str | None:
    """Return the confirmed address of a caller to which the code for a proof is sent, if any."""
    return (known.email_confirmed and known.email) or (known.phone_confirmed and known.phone) or None


def has_proof(known: Any) -> bool:
    """Whether a session has a recent proof."""
    return not is_needed(known, needs_proof=True)


def reauthenticate(known: Any, body: dict[str, Any], *, needs_proof: bool = False) -> bool:
    """Check the current password or code of a body. Return False, unchecked, if none is needed."""
    if not is_needed(known, needs_proof=needs_proof):
        return False
    _check_credential(known, body)
    return True


def record_reauthentication(known: Any, body: dict[str, Any]) -> str:
    """Check a body's password or code, record that in the session, and return the time in ISO 8601."""
    _check_credential(known, body)
    with latchkey.db.transaction() as tx:
        caller = lock_caller(tx, reauthenticated=True)
        tx.run("record_reauthentication", session_id=g.caller.session_id)
        if "nonce" not in body:
            # The statement that spends a code records it.
            audit.record(tx, caller.id, caller.email, ["reauthenticated"], [])
    return caller.moment


def lock_caller(
    tx: Transaction,
    reauthenticated: bool,
    wanted: str = _CREDENTIALS,
    *,
    needs_proof: bool = False,
    unless_anonymous: bool = False,
) -> Any:
    """Lock and return the caller's row. Raises `ApiError` if the session ended or needs reauthentication.

    `unless_anonymous` exempts anonymous users, who could not get a code.
    """
    needs = {"reauthenticated": reauthenticated, "needs_proof": needs_proof, "age": _most(needs_proof)}
    caller = guard.admit(tx.one("lock_caller", **needs, **guard.caller()))
    if caller.state == "reauthentication_needed" and not (unless_anonymous and caller.is_anonymous):
        raise needed(wanted)
    return caller


def _most(needs_proof: bool) -> int | None:
    """Return how many seconds an authentication of the caller's session counts, or None for ever."""
    most = latchkey.settings.reauthentication_age
    if most is not None and guard.is_on_pages():
        most = max(most, _LEAST_ON_PAGES)
    if not needs_proof:
        return most
    return _PROOF_AGE if most is None else min(most, _PROOF_AGE)


def _check_credential(known: Any, body: dict[str, Any]) -> None:
    if "current_password" in body:
        _check_current_password(body["current_password"], known)
    elif "factor_code" in body:
        if not check_totp(guard.caller_id(), body["factor_code"]):
            details = "factor_code: must be a new code of an authenticator app"
            raise ApiError("reauthentication_not_valid", details)
    elif "nonce" in body:
        _spend_nonce(body["nonce"], known)
    else:
        raise needed()


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
    address = code_address(known)
    spent = address and latchkey.db.one(
        "spend_reauthentication_code",
        user_id=guard.caller_id(),
        address=address,
        code_macs=latchkey.codes.macs(address, nonce),
        network=g.client["network"],
    )
    if not spent:
        raise ApiError("reauthentication_not_valid", "nonce: must be the code that GET /reauthenticate sent")


def needed(what: str = _CREDENTIALS) -> ApiError:
    return ApiError("reauthentication_needed", f"give {what}: this session is too old for this change")
