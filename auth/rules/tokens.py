"""What gives a token now (rules 1 and 2): sessions, sessions of applications, and API keys; and what an
administrative key opens (rule 6).
"""

from collections.abc import Collection
from dataclasses import dataclass
from datetime import datetime
from typing import Protocol

from auth.rules.clients import Client, UserOfClient, may_use
from auth.rules.levels import Aal, Level, lacks_level, lacks_step
from auth.rules.policy import Policy
from auth.rules.refusals import Refusal
from auth.rules.sessions import Session, end_of_session
from auth.rules.users import User, UserOfToken, is_banned


@dataclass(frozen=True, slots=True, kw_only=True)
class ApiKey:
    """`aal` is that of the session that made the key."""

    aal: str
    expires_at: datetime | None


class AdminKey(Protocol):
    """A row about an administrative key. `now` is the time of the facts."""

    @property
    def now(self) -> datetime: ...
    @property
    def expires_at(self) -> datetime | None: ...
    @property
    def scopes(self) -> Collection[str]: ...


def gives_token(
    user: User, expires_at: datetime | None, end: Refusal | None, is_below: bool
) -> Refusal | None:
    """Refuse what is expired, banned, ended, or below the present demand, in this order. None gives a token.

    `expires_at` is the access token's, None for a refresh token or key; `end` is why its session or key has
    ended.
    """
    if expires_at is not None and expires_at <= user.now:
        return "bad_jwt"
    if is_banned(user):
        return "user_banned"
    if end is not None:
        return end
    return "insufficient_aal" if is_below else None


def refusal_of_session(
    user: UserOfToken,
    session: Session | None,
    expires_at: datetime | None,
    aal: Aal,
    level: Level,
    policy: Policy,
) -> Refusal | None:
    """Refuse a session of the user. `aal` is the access token's, `level` what the route demands."""
    end = end_of_session(user, session, policy)
    is_below = session is not None and lacks_level(user, session, aal, level, policy)
    return gives_token(user, expires_at, end, is_below)


def refusal_of_client_session(
    user: UserOfClient,
    session: Session | None,
    resource: str | None,
    client: Client | None,
    expires_at: datetime | None,
    policy: Policy,
    memberships: Collection[str] = (),
) -> Refusal | None:
    """Refuse a session of an application. One that the user may no longer use counts as ended (rule 21).

    `resource` is the audience of its tokens, `memberships` those that count in it.
    """
    end = end_of_session(user, session, policy)
    if session is None or client is None or not may_use(user, client, resource, memberships):
        end = "session_not_found"
    is_below = session is not None and lacks_step(user, session.aal, policy)
    return gives_token(user, expires_at, end, is_below)


def refusal_of_client(client: Client, expires_at: datetime, now: datetime) -> Refusal | None:
    """Refuse a token that an application got for itself, once the application could get none."""
    is_good = expires_at > now and "client_credentials" in client.grant_types and not client.is_blocked
    return None if is_good else "bad_jwt"


def end_of_key(key: ApiKey | None, now: datetime) -> Refusal | None:
    """A key expires at its moment."""
    if key is None or (key.expires_at is not None and key.expires_at <= now):
        return "api_key_not_found"
    return None


def refusal_of_api_key(
    user: UserOfToken, key: ApiKey | None, expires_at: datetime | None, policy: Policy
) -> Refusal | None:
    """Refuse an API key, or an access token from one. Its level is that of its session (rule 3)."""
    is_below = key is not None and lacks_step(user, key.aal, policy)
    return gives_token(user, expires_at, end_of_key(key, user.now), is_below)


def is_expired(key: AdminKey) -> bool:
    return key.expires_at is not None and key.expires_at <= key.now


def refusal_of_admin_key(key: AdminKey | None, scope: str | None) -> Refusal | None:
    """Refuse an administrative key that is unknown, ended or expired, or lacks the scope of an operation.

    An operation without a scope admits no such key.
    """
    if key is None or is_expired(key):
        return "admin_key.bad_jwt"
    return None if scope in key.scopes else "admin_key.insufficient_scope"
