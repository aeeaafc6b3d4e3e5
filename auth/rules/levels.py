"""Levels and second steps (rule 3): only a factor raises a session, or what it opens."""

from datetime import datetime
from enum import StrEnum

from auth.rules.policy import FRESH_AGE, Policy
from auth.rules.sessions import Session
from auth.rules.users import User, UserOfToken, has_factor, is_anonymous

# `aal1` or `aal2`. An access token of the audience `second_step`, which lacks a step, has `aal0`. They are
# compared as words.
Aal = str


class Level(StrEnum):
    """What a route demands of its caller's session. Only SESSION and ENROL admit `aal0`."""

    # No session: the guard admits anybody, only access tokens of OAuth clients, or no session.
    ANYONE = "anyone"
    CLIENT = "client"
    SERVICE_ROLE = "service_role"
    # A session, and nothing more.
    SESSION = "session"
    # The level `aal2` of a user who has, or must have, a second step.
    AAL1 = "aal1"
    # `aal2` of a user with a factor, a passkey too.
    ENROL = "enrol"
    # What AAL1 and ENROL demand. For PROOF, proofs.py asks for a proof besides.
    AAL2 = "aal2"
    PROOF = "proof"
    # `aal2` of every user.
    SECOND_FACTOR = "second_factor"


def must_have_step(user: User, policy: Policy) -> bool:
    """AUTH_MFA_REQUIRED. Anonymous users need none: they cannot give the proof that enrolling takes."""
    if policy.mfa_required == "all":
        return not is_anonymous(user)
    return policy.mfa_required == "admins" and user.role == "admin"


def lacks_step(user: UserOfToken, aal: Aal, policy: Policy) -> bool:
    """Whether a session lacks a step that its user has, or must have."""
    return aal < "aal2" and (user.has_second_step or must_have_step(user, policy))


def passes_every_step(user: UserOfToken, aal: Aal) -> bool:
    """Whether a session needs no further step, so that its network becomes known (rule 29)."""
    return aal >= "aal2" or not user.has_second_step


def level_at(user: UserOfToken, moment: datetime) -> Aal:
    """The level of a proof that a session gave at a moment, when its user may not have had a factor yet."""
    return "aal1" if user.oldest_factor_at is None or user.oldest_factor_at > moment else "aal2"


def level_of(session: Session, aal: Aal, now: datetime) -> Aal:
    """The lower level of the session and of its access token, which may be older than its second step.

    For 15 minutes after the session has registered its user's first factor, a passkey, its tokens count as
    `aal2`: clients keep them, and without the passkey their holders could do the same.
    """
    registered_at = session.first_passkey_at
    if aal != "aal0" and registered_at is not None and registered_at > now - FRESH_AGE:
        return "aal2"
    return min(session.aal, aal)


def lacks_level(user: UserOfToken, session: Session, aal: Aal, level: Level, policy: Policy) -> bool:
    """Whether a session is below what a route demands.

    One whose user has no factor yet may enrol one, even at `aal0`. With any factor, a passkey too, that takes
    `aal2`.
    """
    own = level_of(session, aal, user.now)
    if own >= "aal2":
        return False
    if level == Level.SECOND_FACTOR:
        return True
    if aal == "aal0" and level not in (Level.SESSION, Level.ENROL):
        return True
    if level in (Level.AAL1, Level.AAL2, Level.PROOF) and lacks_step(user, own, policy):
        return True
    return level in (Level.AAL2, Level.PROOF, Level.ENROL) and has_factor(user)
