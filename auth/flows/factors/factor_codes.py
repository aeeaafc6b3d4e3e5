"""Codes of authenticator apps, and recovery codes: each works once.

A verdict is recorded before the response.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

import structlog

from auth.core import promises
from auth.core.factors import recovery_codes, totp
from auth.core.settings.constants import failures_of
from auth.core.tokens.derived_keys import CannotOpen
from auth.web import limits
from auth.web.asked import Asked
from sql import Transaction, queries

_TOTP_LENGTH = 6

log = structlog.get_logger()


class Match(NamedTuple):
    """The factor and time step of a right code."""

    factor_id: str
    step: int


def check_app_code(
    asked: Asked, tx: Transaction, user_id: str, factors: Sequence[Any], code: str
) -> Match | None:
    """Record whether this is a code of one of `factors`, rows of `list_totp_factors`, and return which.

    A code counts once for each app that it is compared with, because each adds to the odds of a guess. Refuse
    after too many wrong codes. Call it before locking the user's row. Lock the row for a wrong code too,
    which must not roll the transaction back.
    """
    steps = ((factor.id, _unused_step(asked, factor, code)) for factor in factors)
    match = next((Match(id, step) for id, step in steps if step is not None), None)
    _record_verdict(asked, tx, "totp", user_id, match is not None, len(factors))
    return match


def spend_totp(tx: Transaction, match: Match | None) -> bool:
    """Whether a code is right, and was not used meanwhile. Call it with the user's row locked."""
    return match is not None and queries.use_totp_step(tx, id=match.factor_id, step=match.step) is not None


def check_recovery_code(
    asked: Asked, tx: Transaction, user_id: str, code: str, made_before: Any = None
) -> bytes | None:
    """Record whether a recovery code is right, and return how to spend it. Refuses and locks as above."""
    macs = asked.parts.recovery_codes.macs(user_id, recovery_codes.canonical(code))
    row = queries.select_recovery_code(tx, user_id=user_id, code_macs=macs, made_before=made_before)
    _record_verdict(asked, tx, "recovery", user_id, row is not None)
    return bytes(row.code_mac) if row else None


def spend_recovery_code(
    tx: Transaction, user_id: str, code_mac: bytes | None
) -> "queries.UseRecoveryCode | None":
    """Return a row with the number of `remaining` codes, or None if the code is wrong or used."""
    return queries.use_recovery_code(tx, user_id=user_id, code_mac=code_mac)


def _record_verdict(
    asked: Asked, tx: Transaction, kind: str, user_id: str, is_right: bool, apps: int = 1
) -> None:
    most = promises.WRONG_CODES_A_DAY[kind]
    verdict = queries.record_factor_verdict(
        tx,
        kind=kind,
        user_id=user_id,
        network=asked.client["network"],
        failures=failures_of(kind),
        # A user who has more apps than tries still has one code a day.
        tries=min(max(apps, 1), most),
        is_right=is_right,
    )
    asked.noted.note(user_id=user_id, tries=verdict.count, of=most)
    if verdict.refused_for is not None:
        asked.noted.add_window(limits.Window(most, 0, verdict.refused_for))
        key = "mfa_recovery_codes_locked" if kind == "recovery" else "factor.over_request_rate_limit"
        raise limits.refusal(key, verdict.refused_for)


def is_totp(asked: Asked, user_id: str, factor: Any, code: str) -> bool:
    """Whether `spend_totp` will take a code, before the token hook is asked."""
    with asked.db.transaction() as tx:
        match = check_app_code(asked, tx, user_id, [factor], code)
        queries.lock_user(tx, user_id=user_id)
    return match is not None


def is_recovery_code(asked: Asked, user_id: str, code: str, made_before: Any = None) -> bool:
    """Whether `spend_recovery_code` will take a code, before the token hook is asked."""
    with asked.db.transaction() as tx:
        code_mac = check_recovery_code(asked, tx, user_id, code, made_before)
        queries.lock_user(tx, user_id=user_id)
    return code_mac is not None


def proves_owner(asked: Asked, tx: Transaction, factors: "list[queries.ListAskedFactors]", code: str) -> bool:
    """Whether a code is of a factor that a link asks for, or a recovery code as old as these."""
    user_id = factors[0].user_id
    if len(code) != _TOTP_LENGTH:
        code_mac = check_recovery_code(asked, tx, user_id, code, factors[0].added_before)
        queries.lock_user(tx, user_id=user_id)
        return spend_recovery_code(tx, user_id, code_mac) is not None
    match = check_app_code(asked, tx, user_id, [factor for factor in factors if factor.secret], code)
    queries.lock_user(tx, user_id=user_id)
    is_removed = match is not None and any(each.is_removed for each in factors if each.id == match.factor_id)
    return is_removed or spend_totp(tx, match)


def _step(asked: Asked, sealed: bytes, factor_id: str, code: str, moment: float) -> int | None:
    try:
        secret = asked.parts.sealer.open(sealed, factor_id)
    except CannotOpen as error:
        log.error("totp_secret_not_opened", factor_id=factor_id, reason=str(error))
        return None
    return totp.matching_step(secret, code, moment)


def _unused_step(asked: Asked, factor: Any, code: str) -> int | None:
    # A security key has no secret.
    step = factor.secret and _step(asked, bytes(factor.secret), factor.id, code, factor.moment)
    return step if step is not None and step > (factor.last_step or -1) else None


def check_totp(asked: Asked, user_id: str, code: str, *, added_before: Any = None) -> bool:
    """Whether this is a code of one of a user's authenticator apps. Refuse after too many wrong codes."""
    with asked.db.transaction() as tx:
        factors = queries.list_totp_factors(tx, user_id=user_id, verified_before=added_before)
        match = check_app_code(asked, tx, user_id, factors, code)
        queries.lock_user(tx, user_id=user_id)
        return spend_totp(tx, match)
