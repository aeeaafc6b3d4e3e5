"""Sessions: when one has ended, and when its user authenticated and proved who they are."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime

from auth.rules.policy import Policy
from auth.rules.refusals import Refusal
from auth.rules.users import User

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


@dataclass(frozen=True, slots=True, kw_only=True)
class Session:
    """`method` is how the user signed in: password, otp, oauth, webauthn, anonymous, recovery (a mailed one),
    sign_up (one that goes on in the window where the password was typed). `aal` is `aal1` or `aal2`.

    `reauthenticated_at` is when the user last authenticated again in the session, `factor_proved_at` when
    with a factor, `code_given_at` when with a code from the mailbox. `first_passkey_at` is when the session
    registered its user's first factor, a passkey. `opened_by` is the session that gave an application this
    one, `resource` the audience of an application's.
    """

    method: str
    aal: str
    created_at: datetime
    refreshed_at: datetime
    ended_at: datetime | None = None
    reauthenticated_at: datetime | None = None
    factor_proved_at: datetime | None = None
    code_given_at: datetime | None = None
    first_passkey_at: datetime | None = None
    opened_by: str | None = None
    resource: str | None = None


def end_of_session(user: User, session: Session | None, policy: Policy, now: datetime) -> Refusal | None:
    """Rule 21: nothing that has ended comes back. A session expires unrefreshed, or at its timebox.

    The timebox of an anonymous user begins when the user becomes permanent: before, nobody could sign in
    again.
    """
    if session is None or session.ended_at is not None:
        return "session_not_found"
    if session.refreshed_at <= now - policy.refresh_token_lifetime:
        return "session_expired"
    if policy.session_timebox is None:
        return None
    begins = [session.created_at]
    if session.method == "anonymous":
        if user.converted_at is None:
            return None
        begins.append(user.converted_at)
    return "session_expired" if max(begins) <= now - policy.session_timebox else None


def authenticated_at(session: Session) -> datetime:
    """When the session's user last authenticated.

    An application's session is as old as the proof of the browser that opened it, or a stolen cookie could
    open fresh sessions. A sign-up that goes on in its window authenticates nobody: the password was typed
    before. Nor does a provider where the user was signed in already.
    """
    again = session.reauthenticated_at
    if session.opened_by is not None or session.method == "sign_up":
        return again or EPOCH
    if session.method == "oauth":
        return again or session.created_at
    return max(session.created_at, again or session.created_at)


def proved_at(session: Session) -> datetime | None:
    """When the session's user last proved who they are. An anonymous sign-in proves nothing."""
    return session.reauthenticated_at if session.method == "anonymous" else authenticated_at(session)


def surplus(created_at: Mapping[str, datetime], most: int) -> list[str]:
    """The sessions that another one ends, by id: all but the newest, so that there are at most `most`."""
    return sorted(created_at, key=created_at.__getitem__, reverse=True)[most - 1 :]


def sessions_beyond(
    user: User, sessions: Mapping[str, Session], most: int, policy: Policy, now: datetime
) -> list[str]:
    """The ids of those that end when one more begins: a user has `most` live ones, the newest."""
    live = {
        id: session.created_at
        for id, session in sessions.items()
        if end_of_session(user, session, policy, now) is None
    }
    return surplus(live, most)
