"""Sessions: when one has ended, and when its user authenticated and proved who they are."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Protocol

from auth.rules.policy import Policy
from auth.rules.refusals import Refusal
from auth.rules.users import User

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


class Session(Protocol):
    """A row with a session of its user. `method` is how the user signed in: password, otp, oauth, webauthn,
    anonymous, recovery (a mailed one), sign_up (one that goes on in the window where the password was typed).
    `aal` is `aal1` or `aal2`. `first_passkey_at` is when the session registered its user's first factor, a
    passkey.
    """

    @property
    def method(self) -> str: ...
    @property
    def aal(self) -> str: ...
    @property
    def session_created_at(self) -> datetime: ...
    @property
    def refreshed_at(self) -> datetime: ...
    @property
    def ended_at(self) -> datetime | None: ...
    @property
    def first_passkey_at(self) -> datetime | None: ...


class AuthenticatedSession(Session, Protocol):
    """`reauthenticated_at` is when the user last authenticated again in the session. `opened_by` is the
    session that gave an application this one.
    """

    @property
    def reauthenticated_at(self) -> datetime | None: ...
    @property
    def opened_by(self) -> str | None: ...


class ProvedSession(AuthenticatedSession, Protocol):
    """`factor_proved_at` is when the user last authenticated again with a factor, `code_given_at` when with a
    code from the mailbox. `resource` is the audience of an application's session.
    """

    @property
    def factor_proved_at(self) -> datetime | None: ...
    @property
    def code_given_at(self) -> datetime | None: ...
    @property
    def resource(self) -> str | None: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class OpenSession:
    """One of the sessions of a user that no act has ended."""

    id: str
    method: str
    aal: str
    session_created_at: datetime
    refreshed_at: datetime
    ended_at: None = None
    first_passkey_at: None = None


def end_of_session(user: User, session: Session | None, policy: Policy) -> Refusal | None:
    """Rule 21: nothing that has ended comes back. A session expires unrefreshed, or at its timebox.

    The timebox of an anonymous user begins when the user becomes permanent: before, nobody could sign in
    again.
    """
    if session is None or session.ended_at is not None:
        return "session_not_found"
    if session.refreshed_at <= user.now - policy.refresh_token_lifetime:
        return "session_expired"
    if policy.session_timebox is None:
        return None
    begins = [session.session_created_at]
    if session.method == "anonymous":
        if user.converted_at is None:
            return None
        begins.append(user.converted_at)
    return "session_expired" if max(begins) <= user.now - policy.session_timebox else None


def authenticated_at(session: AuthenticatedSession) -> datetime:
    """When the session's user last authenticated: at the sign-in, a second step or another proof, not at a
    refresh. Applications read it as `auth_time`, and organizations limit its age (rule 47).

    An application's session is as old as the proof of the browser that opened it, or a stolen cookie could
    open fresh sessions. A sign-up that goes on in its window authenticates nobody: the password was typed
    before. Nor does a provider where the user was signed in already.
    """
    again = session.reauthenticated_at
    if session.opened_by is not None or session.method == "sign_up":
        return again or EPOCH
    if session.method == "oauth":
        return again or session.session_created_at
    return max(session.session_created_at, again or session.session_created_at)


def proved_at(session: AuthenticatedSession) -> datetime | None:
    """When the session's user last proved who they are. An anonymous sign-in proves nothing."""
    return session.reauthenticated_at if session.method == "anonymous" else authenticated_at(session)


def surplus(created_at: Mapping[str, datetime], most: int) -> list[str]:
    """The sessions that another one ends, by id: all but the newest, so that there are at most `most`."""
    return sorted(created_at, key=created_at.__getitem__, reverse=True)[most - 1 :]


def sessions_beyond(user: User, sessions: Iterable[OpenSession], most: int, policy: Policy) -> list[str]:
    """The ids of those that end when one more begins: a user has `most` live ones, the newest."""
    live = {
        session.id: session.session_created_at
        for session in sessions
        if end_of_session(user, session, policy) is None
    }
    return surplus(live, most)
