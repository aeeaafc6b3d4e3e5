"""Codes of authenticator apps, and recovery codes. They are counted before they are checked, and work
once."""

from collections.abc import Iterable
from typing import Any

import structlog

from auth.context import latchkey
from auth.factors import recovery_codes, totp
from auth.tokens.keys import CannotOpen
from auth.web import audit, counts, limits
from sql import Transaction

_TOTP_LENGTH = 6

log = structlog.get_logger()


def count(tx: Transaction, kind: str, user_id: str) -> None:
    """Count an attempt, of a kind of `WRONG_CODES_A_DAY`, as wrong. Raises `ApiError` if none is left.

    Call it before the user's row is locked. A wrong code must not roll the transaction back.
    """
    tried = tx.one("count_factor_attempt", key=f"{kind} {user_id}")
    most = counts.WRONG_CODES_A_DAY[kind]
    audit.about(user_id=user_id, tries=tried.count, of=most)
    if tried.count > most:
        limits.note(limits.Window(most, 0, tried.seconds_left))
        raise limits.refusal("factor.over_request_rate_limit", tried.seconds_left)


def spend_totp(tx: Transaction, user_id: str, factors: Iterable[Any], code: str) -> Any:
    """Return the factor whose code this is, or None. `factors` are rows of `list_totp_factors`."""
    for factor in factors:
        step = _step(bytes(factor.secret), factor.id, code, factor.moment)
        if step is not None and tx.one("use_totp_step", id=factor.id, step=step):
            tx.run("take_back_factor_attempt", key=f"totp {user_id}")
            return factor
    return None


def spend_recovery_code(tx: Transaction, user_id: str, code: str, made_before: Any = None) -> Any:
    """Return a row with the number of `remaining` codes, or None if the code is wrong or used."""
    macs = latchkey.recovery_codes.macs(user_id, recovery_codes.canonical(code))
    row = tx.one("use_recovery_code", user_id=user_id, code_macs=macs, made_before=made_before)
    if row:
        tx.run("take_back_factor_attempt", key=f"recovery {user_id}")
    return row


def proves_owner(tx: Transaction, link: Any, code: str) -> bool:
    """Whether a code is of a factor from before the change that a link undoes. Raises `ApiError`.

    `link` is a row of `select_asked_factor`. The factor may be the one that the change removed.
    """
    is_totp = len(code.replace(" ", "")) == _TOTP_LENGTH
    count(tx, "totp" if is_totp else "recovery", link.user_id)
    tx.one("lock_user", user_id=link.user_id)
    if not is_totp:
        return spend_recovery_code(tx, link.user_id, code, link.created_at) is not None
    factors = tx.all("list_totp_factors", user_id=link.user_id, verified_before=link.created_at)
    return bool(spend_totp(tx, link.user_id, factors, code)) or _is_of_removed_factor(link, code)


def _is_of_removed_factor(link: Any, code: str) -> bool:
    removed = link.restores or {}
    if removed.get("factor_type") != "totp":
        return False
    step = _step(bytes.fromhex(removed["secret"][2:]), removed["id"], code, link.moment)
    return step is not None and step > (removed["last_step"] or -1)


def _step(sealed: bytes, factor_id: str, code: str, moment: float) -> int | None:
    try:
        secret = latchkey.sealer.open(sealed, factor_id)
    except CannotOpen as error:
        log.error("totp_secret_not_opened", factor_id=factor_id, reason=str(error))
        return None
    return totp.matching_step(secret, code.replace(" ", ""), moment)


def check_totp(user_id: str, code: str, *, added_before: Any = None) -> bool:
    """Whether this is a code of one of a user's authenticator apps. Raises `ApiError` after too many."""
    with latchkey.db.transaction() as tx:
        count(tx, "totp", user_id)
        tx.one("lock_user", user_id=user_id)
        factors = tx.all("list_totp_factors", user_id=user_id, verified_before=added_before)
        return spend_totp(tx, user_id, factors, code) is not None
