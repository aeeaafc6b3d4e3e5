"""Factors: which may be verified, which are older than a thief's, and which may be copies."""

from datetime import datetime, timedelta

from auth.rules.policy import RECENT_AGE

# The first factor and those that follow it within an hour are trusted alike.
_FIRST_HOUR = timedelta(hours=1)


def may_verify(
    *, is_verified: bool, is_begun_here: bool, created_at: datetime, lifetime: timedelta, now: datetime
) -> bool:
    """Only the session that began to enrol a factor, with a proof, may verify it for the first time."""
    return is_verified or (is_begun_here and created_at > now - lifetime)


def trusted_before(first_factor_at: datetime | None, now: datetime) -> datetime:
    """Trust the factors that were verified before this moment: a thief of a session may have added newer
    ones.

    `first_factor_at` is when the user's first factor ever was verified, also if it was removed since.
    """
    week_ago = now - RECENT_AGE
    return week_ago if first_factor_at is None else max(week_ago, first_factor_at + _FIRST_HOUR)


def counter_rose(before: int, now: int) -> bool:
    """A counter that does not rise indicates a copy, unless the authenticator has none."""
    return now > before or now == before == 0


def may_be_copy(before: int, now: int, *, is_synced: bool | None) -> bool:
    """Copies of a key that is synced, or may be, have counters of their own."""
    return not counter_rose(before, now) and is_synced is False
