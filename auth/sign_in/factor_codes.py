"""Codes of authenticator apps, and recovery codes. They are counted before they are checked, and work
once."""

from collections.abc import Iterable
from typing import Any

import structlog

from auth.context import latchkey
from auth.factors import recovery_codes, totp
from auth.tokens.keys import CannotOpen
from auth.web import audit, counts, g, limits
from sql import Transaction, queries

_TOTP_LENGTH = 6

log = structlog.get_logger()


def count(tx: Transaction, kind: str, user_id: str, apps: int = 1) -> "queries.CountFactorTries":
    """Count an attempt, of a kind of `WRONG_CODES_A_DAY`, as wrong, and return its row for `spend_…`.

    It counts once for each app that the code is tried against, because each adds to the odds of a guess.
    Raises `ApiError` if too few tries are left. Call it before the user's row is locked. A wrong code must
    not roll the transaction back.
    """
    most = counts.WRONG_CODES_A_DAY[kind]
    # A user who has more apps than tries still has one code a day.
    tries = min(max(apps, 1), most)
    columns = {"kind": kind, "user_id": user_id, "network": g.client["network"]}
    tried = queries.count_factor_tries(tx, **columns, tries=tries, most=most)
    audit.about(user_id=user_id, tries=tried.count, of=most)
    if tried.seconds_left:
        limits.note(limits.Window(most, 0, tried.seconds_left))
        raise limits.refusal("factor.over_request_rate_limit", tried.seconds_left)
    return tried


def spend_totp(tx: Transaction, tried: Any, factors: Iterable[Any], code: str) -> Any:
    """Return the factor whose code this is, or None. `factors` are rows of `list_totp_factors`."""
    for factor in factors:
        step = _step(bytes(factor.secret), factor.id, code, factor.moment)
        if step is not None and queries.use_totp_step(tx, id=factor.id, step=step):
            _take_back(tx, tried)
            return factor
    return None


def spend_recovery_code(
    tx: Transaction, tried: Any, user_id: str, code: str, made_before: Any = None
) -> "queries.UseRecoveryCode | None":
    """Return a row with the number of `remaining` codes, or None if the code is wrong or used."""
    macs = latchkey.recovery_codes.macs(user_id, recovery_codes.canonical(code))
    row = queries.use_recovery_code(tx, user_id=user_id, code_macs=macs, made_before=made_before)
    if row:
        _take_back(tx, tried)
    return row


def _take_back(tx: Transaction, tried: Any) -> None:
    queries.take_back_factor_tries(tx, keys=tried.keys, tries=tried.tries)


def is_totp(user_id: str, factor: Any, code: str) -> bool:
    """Whether `spend_totp` will take a code, before the token hook is asked. Raises `ApiError`."""
    with latchkey.db.transaction() as tx:
        tried = count(tx, "totp", user_id)
        step = _step(bytes(factor.secret or b""), factor.id, code, factor.moment)
        is_right = step is not None and step > (factor.last_step or -1)
        if is_right:
            _take_back(tx, tried)
    return is_right


def is_recovery_code(user_id: str, code: str) -> bool:
    """Whether `spend_recovery_code` will take a code, before the token hook is asked. Raises `ApiError`."""
    macs = latchkey.recovery_codes.macs(user_id, recovery_codes.canonical(code))
    with latchkey.db.transaction() as tx:
        tried = count(tx, "recovery", user_id)
        is_right = queries.select_recovery_code(tx, user_id=user_id, code_macs=macs) is not None
        if is_right:
            _take_back(tx, tried)
    return is_right


def proves_owner(tx: Transaction, asked: "list[queries.ListAskedFactors]", code: str) -> bool:
    """Whether a code is of one of the factors that a link asks for, or a recovery code as old as these.

    Raises `ApiError`.
    """
    user_id = asked[0].user_id
    if len(code.replace(" ", "")) != _TOTP_LENGTH:
        tried = count(tx, "recovery", user_id)
        queries.lock_user(tx, user_id=user_id)
        return spend_recovery_code(tx, tried, user_id, code, asked[0].added_before) is not None
    factors = [factor for factor in asked if factor.secret]
    tried = count(tx, "totp", user_id, len(factors))
    queries.lock_user(tx, user_id=user_id)
    if spend_totp(tx, tried, (factor for factor in factors if not factor.is_removed), code):
        return True
    is_right = any(_is_of_removed(factor, code) for factor in factors if factor.is_removed)
    if is_right:
        _take_back(tx, tried)
    return is_right


def _is_of_removed(factor: "queries.ListAskedFactors", code: str) -> bool:
    step = _step(bytes(factor.secret or b""), factor.id, code, factor.moment)
    return step is not None and step > (factor.last_step or -1)


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
        factors = queries.list_totp_factors(tx, user_id=user_id, verified_before=added_before)
        tried = count(tx, "totp", user_id, len(factors))
        queries.lock_user(tx, user_id=user_id)
        return spend_totp(tx, tried, factors, code) is not None
