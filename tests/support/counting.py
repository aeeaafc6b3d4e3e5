"""How record_verdict and take_from_windows count, in Python, which the tests compare with SQL."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from auth.rules.counts import Limit


@dataclass(frozen=True, slots=True)
class Count:
    """A count, and when its window ends."""

    count: int
    expires_at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """`refused_by` is the used-up limit; if there is one, the verdict must not be told. `first` is the first
    count.
    """

    counts: dict[Limit, Count]
    refused_by: Limit | None = None
    first: Count | None = None


def add_to_count(known: Count | None, limit: Limit, tries: int, now: datetime) -> Count:
    """A window begins with its first try, and ends at its moment."""
    if known is None or known.expires_at <= now:
        return Count(tries, now + timedelta(seconds=limit.seconds))
    return Count(known.count + tries, known.expires_at)


def verdict(
    limits: Sequence[Limit], known: dict[Limit, Count], *, is_right: bool, now: datetime, tries: int = 1
) -> Verdict:
    """Rule 28: count a verdict in one limit after the other. Beyond the first that is used up it is not told.

    A right one is taken from the counts again; if it is refused, it counts as wrong: a count that does not
    move would tell it.
    """
    counts = dict(known)
    first = None
    for limit in limits:
        counts[limit] = add_to_count(counts.get(limit), limit, tries, now)
        first = first or counts[limit]
        if counts[limit].count > limit.amount:
            return Verdict(counts=counts, refused_by=limit, first=first)
    if is_right:
        for limit in limits:
            counts[limit] = add_to_count(counts[limit], limit, -tries, now)
    return Verdict(counts=counts, first=first)


def tightest_window(
    windows: Sequence[Limit], known: dict[Limit, Count], now: datetime
) -> tuple[Limit, Count] | None:
    """Rule 31: count in each window until one refuses; return that, or the one with the least left."""
    tightest: tuple[Limit, Count] | None = None
    for window in windows:
        counted = add_to_count(known.get(window), window, 1, now)
        if tightest is None or window.amount - counted.count < tightest[0].amount - tightest[1].count:
            tightest = window, counted
        if counted.count > window.amount:
            break
    return tightest
