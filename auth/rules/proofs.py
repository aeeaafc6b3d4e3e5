"""Which proof a change takes of its user (rule 13): the table "Who may change what" of docs/security.md."""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Literal

from auth.rules.levels import Aal, Level, lacks_level
from auth.rules.policy import FRESH_AGE, RECENT_AGE, Policy
from auth.rules.refusals import Refusal
from auth.rules.sessions import AuthenticatedSession, ProvedSession, authenticated_at, proved_at
from auth.rules.users import User, UserOfToken, has_factor, is_anonymous

Verb = Literal["add", "change", "remove"]
Kind = Literal[
    "metadata",
    "password",
    "account",
    "email",
    "phone",
    "identity",
    "factor",
    "passkey",
    "recovery_codes",
    "grant",
    "api_key",
    "device",
    "organization",
]
# What the request itself brought: the code of an app, one from the user's mailbox, another proof, or `begun`
# if an earlier request of the change brought the proof.
Proof = Literal["factor", "code", "proof", "begun"]
_IN_ORDER: tuple[Refusal, ...] = (
    "insufficient_aal",
    "mfa.reauthentication_needed",
    "code.reauthentication_needed",
    "reauthentication_needed",
)
# A passkey cannot be sent with the change, so a proof by a factor counts for five minutes at least.
_LEAST_AGE_OF_FACTOR = timedelta(minutes=5)
# How long a mailed recovery is the proof for its new password, also with AUTH_REAUTHENTICATION_AGE=always.
_RECOVERY_AGE = timedelta(minutes=10)


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """`added_at` is when what a removal removes was added.

    None for other changes, for what the user was created with, and for a factor whose enrolment has not
    finished. `kind` is None for the removal of what the user does not have.
    """

    verb: Verb
    kind: Kind | None
    added_at: datetime | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Addition:
    """What the user has, but was not created with."""

    id: str
    kind: Kind
    added_at: datetime
    # A passkey that a browser made unasked (rule 51). Its first use adds it again.
    is_unused: bool = False


def changes_on(verb: Verb, kind: Kind | None, id: str | None, additions: Iterable[Addition]) -> list[Change]:
    """The changes on what a removal names by its id, or by its kind: the id of an addition says its kind."""
    if verb != "remove":
        return [Change(verb=verb, kind=kind)]
    matching = [each for each in additions if (each.kind == kind if id is None else each.id == id)]
    if not matching:
        return [Change(verb=verb, kind=kind)]
    return [Change(verb=verb, kind=each.kind, added_at=each.added_at) for each in matching]


def is_recent(addition: Addition, now: datetime) -> bool:
    """Whether a thief may have made an addition, which the user can take back."""
    return addition.is_unused or addition.added_at >= now - RECENT_AGE


def refusal_of_changes(
    changes: Iterable[Change],
    user: UserOfToken,
    session: ProvedSession,
    aal: Aal,
    proof: Proof | None,
    policy: Policy,
) -> Refusal | None:
    """The first of `_IN_ORDER`: nobody gives a proof for what is refused whatever the proof is."""
    refusals = {refusal_of_change(change, user, session, aal, proof, policy) for change in changes}
    return next((refusal for refusal in _IN_ORDER if refusal in refusals), None)


def refusal_of_change(
    change: Change,
    user: UserOfToken,
    session: ProvedSession,
    aal: Aal,
    proof: Proof | None,
    policy: Policy,
) -> Refusal | None:
    """Refuse a session that is below the level of the change, then one without the proof that it takes.

    `aal` is the access token's, and `proof` what the request itself brought.
    """
    if not may_do(change, user, session, aal, policy):
        return "insufficient_aal"
    if not takes_proof(change) or proof in ("begun", "factor"):
        return None
    # The first factor of an administrator opens the console, so a password alone does not do.
    if _adds_factor(change) and user.role == "admin" and not has_factor(user):
        has_code = proof == "code" or _is_after(session.code_given_at, user.now - FRESH_AGE)
        return None if has_code else "code.reauthentication_needed"
    if has_factor(user) and not may_take_back(user, session, change.added_at):
        age = max(policy.proof_age, _LEAST_AGE_OF_FACTOR)
        return None if _is_after(last_proof(user, session), user.now - age) else "mfa.reauthentication_needed"
    if proof is not None or (change.kind == "password" and is_fresh_recovery(session, user.now)):
        return None
    if change.kind in ("password", "account"):
        is_late = policy.change_age is not None and authenticated_at(session) <= user.now - policy.change_age
        return "reauthentication_needed" if is_late else None
    if (
        change.verb == "add"
        and change.kind in ("email", "phone", "identity", "passkey")
        and is_anonymous(user)
    ):
        return None
    return None if is_fresh(proved_at(session), policy, user.now) else "reauthentication_needed"


def may_do(change: Change, user: UserOfToken, session: ProvedSession, aal: Aal, policy: Policy) -> bool:
    """Whether a session may do a change, perhaps after a proof: by its level, or to take an addition back."""
    if may_take_back(user, session, change.added_at):
        return True
    return not lacks_level(user, session, aal, level_of_change(change, user), policy)


def level_of_change(change: Change, user: UserOfToken) -> Level:
    """The level that a change demands of its session.

    A user without the factor that AUTH_MFA_REQUIRED demands may enrol it, and may remove what was added in
    the last seven days: both demand ENROL, not AAL2.
    """
    if change.kind == "metadata":
        return Level.AAL1
    if change.verb == "remove" and change.kind in ("grant", "api_key"):
        return Level.AAL1 if has_factor(user) else Level.SESSION
    if change.kind == "recovery_codes":
        return Level.SECOND_FACTOR
    if _adds_factor(change):
        return Level.ENROL
    if _removes_unverified_factor(change):
        return Level.SESSION
    return Level.ENROL if _is_after(change.added_at, user.now - RECENT_AGE) else Level.AAL2


def takes_proof(change: Change) -> bool:
    """Every change does, except that of metadata or grants, and the removal of an API key or of a factor that
    was never verified.
    """
    if change.kind in ("metadata", "grant") or _removes_unverified_factor(change):
        return False
    return not (change.verb == "remove" and change.kind == "api_key")


def may_take_back(user: UserOfToken, session: AuthenticatedSession, added_at: datetime | None) -> bool:
    """Whether a session of a mailed recovery may remove, without a factor, what a thief may have added.

    That was added in the last seven days and before the session. A factor that is older than seven days is
    asked for. A session that was raised to `aal2` takes back nothing without a factor, even with an access
    token from before.
    """
    if added_at is None or not user.now - RECENT_AGE < added_at < session.session_created_at:
        return False
    if session.aal != "aal1" or session.opened_by is not None or session.method != "recovery":
        return False
    return user.oldest_factor_at is None or user.oldest_factor_at > user.now - RECENT_AGE


def is_fresh_recovery(session: AuthenticatedSession, now: datetime) -> bool:
    """Whether a recovery was just proved: within the time of a code, it is the proof for the new password."""
    if session.method != "recovery" or session.opened_by is not None:
        return False
    return session.session_created_at > now - _RECOVERY_AGE


def last_proof(user: UserOfToken, session: ProvedSession) -> datetime | None:
    """When a session was last proved to be its user's: with a factor, if the user has one.

    A thief of an old session may know the password, or read the mail.
    """
    return session.factor_proved_at if has_factor(user) else proved_at(session)


def has_proof(user: UserOfToken, session: ProvedSession, policy: Policy) -> bool:
    """Whether a session was proved to be its user's lately enough for a change."""
    return is_fresh(last_proof(user, session), policy, user.now)


def is_fresh(proved: datetime | None, policy: Policy, now: datetime) -> bool:
    """Whether a proof still counts."""
    return _is_after(proved, now - policy.proof_age)


def time_of_addition(moment: datetime, created_at: datetime) -> datetime | None:
    """When a way to sign in was added: at this moment, or None for what the user was created with.

    A provider's sign-up writes the email a microsecond later.
    """
    return moment if moment > created_at + timedelta(microseconds=1) else None


def proof_of_code(*, is_of_session: bool, address_added_at: datetime | None, now: datetime) -> Proof:
    """What a code from the mailbox proves: `code`, or only `proof`, which adds no administrator's first
    factor.

    A thief may have changed the address in the last seven days, so a code that went there is only `proof`. A
    code that an operator's command made belongs to no session, and is `code`.
    """
    is_recent = address_added_at is not None and address_added_at >= now - RECENT_AGE
    return "proof" if is_of_session and is_recent else "code"


def refusal_of_target(target: User) -> Refusal | None:
    """An administrator changes no administrator; the service role key does (rule 6)."""
    return "target.insufficient_permissions" if target.role == "admin" else None


def _adds_factor(change: Change) -> bool:
    return change.verb == "add" and change.kind in ("factor", "passkey")


def _removes_unverified_factor(change: Change) -> bool:
    return change.verb == "remove" and change.kind == "factor" and change.added_at is None


def _is_after(moment: datetime | None, limit: datetime) -> bool:
    return moment is not None and moment > limit
