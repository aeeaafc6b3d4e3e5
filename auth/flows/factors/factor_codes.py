"""Codes of authenticator apps, and recovery codes: each works once.

A verdict is committed before anybody learns it. The act that the code is for spends it.
"""

from collections.abc import Callable, Sequence
from datetime import datetime
from typing import NamedTuple, TypeAlias

import structlog

from auth.core import constants
from auth.core.factors import recovery_codes, totp
from auth.core.tokens.derived_keys import CannotOpen
from auth.flows import verdicts
from auth.rules.policy import RECENT_AGE
from auth.web import limits
from auth.web.asked import Asked
from sql import Runner, acts, queries

# The rows of factors, of which security keys have no secret.
AppFactor: TypeAlias = "queries.SelectFactor | queries.ListTotpFactors | queries.ListFactorsOfUndo"
_TOTP_LENGTH = 6

log = structlog.get_logger()


class Match(NamedTuple):
    """The factor and time step of a right code."""

    factor_id: str
    step: int


def check_app_code(asked: Asked, user_id: str, factors: Sequence[AppFactor], code: str) -> Match | None:
    """Commit whether this is a code of one of `factors`, and return of which.

    A code counts once for each app that it is compared with, because each adds to the odds of a guess. Refuse
    after too many wrong codes.
    """
    steps = ((factor.id, _unused_step(asked, factor, code)) for factor in factors)
    match = next((Match(id, step) for id, step in steps if step is not None), None)
    with acts.begin(asked.db) as act:
        _record_verdict(asked, act, "totp", user_id, match is not None, len(factors))
    return match


def spend_totp(on: Runner, match: Match) -> bool:
    """Whether a right code was not used meanwhile."""
    return queries.use_totp_step(on, id=match.factor_id, step=match.step) == 1


def check_recovery_code(asked: Asked, user_id: str, code: str, made_before: datetime | None) -> bytes | None:
    """Record whether a recovery code is right, and return how to spend it. Refuses like `check_app_code`."""
    macs = asked.parts.recovery_codes.macs(user_id, recovery_codes.canonical(code))
    row = queries.select_recovery_code(asked.db, user_id=user_id, code_macs=macs, made_before=made_before)
    with acts.begin(asked.db) as act:
        _record_verdict(asked, act, "recovery", user_id, row is not None)
    return bytes(row.code_mac) if row else None


def check_totp(asked: Asked, user_id: str, code: str, *, added_before: datetime | None = None) -> bool:
    """Spend a code of one of a user's apps, and return whether it is one. Refuses like `check_app_code`."""
    factors = queries.list_totp_factors(asked.db, user_id=user_id, verified_before=added_before)
    match = check_app_code(asked, user_id, factors, code)
    return match is not None and spend_totp(asked.db, match)


def check_owner(
    asked: Asked, factors: "list[queries.ListFactorsOfUndo]", code: str
) -> Callable[[Runner], bool] | None:
    """Record whether a code is of a factor that a link asks for, or a recovery code as old as these.

    Return the function that spends it, which is called with the user locked. Refuses like `check_app_code`.
    """
    user_id = factors[0].user_id
    if len(code) != _TOTP_LENGTH:
        code_mac = check_recovery_code(asked, user_id, code, factors[0].now - RECENT_AGE)
        if code_mac is None:
            return None
        return lambda on: queries.use_recovery_code(on, user_id=user_id, code_mac=code_mac) is not None
    match = check_app_code(asked, user_id, [factor for factor in factors if factor.secret], code)
    if match and any(each.removed_at for each in factors if each.id == match.factor_id):
        return lambda _: True
    return match and (lambda on: spend_totp(on, match))


def _record_verdict(
    asked: Asked, act: acts.Act, kind: str, user_id: str, is_right: bool, apps: int = 1
) -> None:
    """Record a verdict. Refuse if a limit is used up, and count nothing: a code for fewer apps may follow."""
    most = constants.WRONG_CODES_A_DAY[kind]
    limits_of_code = verdicts.limits_of_code(act, kind, user_id, asked.client["network"], user_id=user_id)
    # A user who has more apps than tries still has one code a day.
    tries = min(max(apps, 1), most)
    verdict = act.record_verdict(limits_of_code, is_right=is_right, tries=tries)
    asked.noted.note(user_id=user_id)
    # A request with a right code that something else refuses does not count as an attempt.
    if not is_right or verdict.refused_for is not None:
        asked.note_details(tries=verdict.count, of=most)
    if verdict.refused_for is not None:
        act.drop_verdict()
        asked.noted.add_window(limits.LimitWindow(most, 0, verdict.refused_for))
        key = "mfa_recovery_codes_locked" if kind == "recovery" else "factor.over_request_rate_limit"
        raise limits.refusal(key, verdict.refused_for)


def _unused_step(asked: Asked, factor: AppFactor, code: str) -> int | None:
    if factor.secret is None:
        return None
    try:
        secret = asked.parts.sealer.open(bytes(factor.secret), factor.id)
    except CannotOpen as error:
        log.error("totp_secret_not_opened", factor_id=factor.id, reason=str(error))
        return None
    step = totp.matching_step(secret, code, factor.now.timestamp())
    return step if step is not None and step > (factor.last_step or -1) else None
