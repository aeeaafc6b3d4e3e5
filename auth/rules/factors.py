"""Factors: verification, the offer of a passkey, what a first factor begins, trust, and copies."""

from datetime import datetime, timedelta

from auth.rules.levels import lacks_step
from auth.rules.policy import RECENT_AGE, Policy
from auth.rules.proofs import has_proof
from auth.rules.sessions import ProvedSession
from auth.rules.users import UserOfToken, is_anonymous

# The first factor and those that follow it within an hour are trusted alike.
_FIRST_HOUR = timedelta(hours=1)


def may_verify(
    *, is_verified: bool, is_begun_here: bool, created_at: datetime, lifetime: timedelta, now: datetime
) -> bool:
    """Only the session that began to enrol a factor, with a proof, may verify it for the first time."""
    return is_verified or (is_begun_here and created_at > now - lifetime)


def is_offered(user: UserOfToken, session: ProvedSession, policy: Policy, *, has_passkey: bool) -> bool:
    """Whether to offer a passkey to a user who has just signed in.

    `has_passkey` is true for one that was not used yet, too. The first factor of an administrator takes a
    mailed code (rule 13), and the first way to sign in of an anonymous user is not chosen in passing.
    """
    if has_passkey or user.role == "admin" or is_anonymous(user):
        return False
    return not lacks_step(user, session.aal, policy) and has_proof(user, session, policy)


def begins_asking(user: UserOfToken) -> bool:
    """Rule 18: whether an app or key will be the first factor that each sign-in asks for."""
    return not user.has_second_step


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
