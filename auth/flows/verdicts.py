"""Verdicts on secrets that people type, which are recorded before anybody learns them."""

from collections.abc import Sequence

from auth.core import promises
from auth.rules import counts
from auth.rules.counts import Limit
from sql import Runner, acts, queries


def limits_of_code(on: Runner, kind: str, subject: str, network: str, *, user_id: str | None) -> list[Limit]:
    """Return the limits of codes of a kind of `promises.WRONG_CODES_A_DAY`, for a subject.

    Runs the same statement without a user.
    """
    a_day = (promises.WRONG_CODES_A_DAY[kind], promises.DAY)
    rows = queries.list_known_networks(on, user_id=user_id)
    is_known = bool(rows) and counts.is_known_network(rows, network, rows[0].now)
    return counts.limits_of(kind, kind, subject, network, is_known=is_known, own=a_day, of_all=a_day)


def record(
    act: acts.Act, limits: Sequence[Limit], *, is_right: bool, tries: int = 1
) -> "queries.RecordVerdict":
    """Count a verdict in its limits. If `refused_by` is the kind of one, nobody may learn the verdict.

    It comes first in its act. The user is locked after it, for a wrong one too, or the lock would tell it;
    and the act returns its refusal, because an exception would roll the count back.
    """
    return act.record_verdict(
        queries.record_verdict,
        kinds=[limit.kind for limit in limits],
        subjects=[limit.subject for limit in limits],
        networks=[limit.network for limit in limits],
        amounts=[limit.amount for limit in limits],
        seconds=[limit.seconds for limit in limits],
        tries=tries,
        is_right=is_right,
    )
