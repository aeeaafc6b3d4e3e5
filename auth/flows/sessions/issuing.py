"""Asks the token hook, between the check of a sign-in and its session.

The hook is called outside any transaction: the claims are read before, and the session is written only if the
inputs of the decision have not changed. Changes of the user by the sign-in (a new user, a linked identity, a
proved address) are committed before, because the token contains them. A link or code stays valid until the
session is written. Call the functions here outside any transaction, once the sign-in has been accepted.
The sessions of browsers on our pages have no token: their flows get no hook.
"""

import json
import uuid
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import Any

from auth.core.json_bodies import JsonObject
from auth.core.tokens.access_tokens import providers_in
from auth.core.tokens.signing_keys import SECOND_STEP
from auth.flows import organizations
from auth.registry import TokenHook
from auth.rules import levels
from auth.rules.deciding import Deciding, still_decides
from auth.rules.organizations import Standing
from auth.rules.sessions import EPOCH
from auth.rules.users import is_anonymous, is_banned
from auth.web.asked import Asked
from auth.web.context import Latchkey
from auth.web.errors import unavailable
from sql import Runner, Transaction, queries

# Claims that the hook may not change.
OWN_CLAIMS = {"sub", "aud", "exp", "iat", "nbf", "session_id", "client_id", "api_key_id", "scope", "nonce",
              "aal", "next_aal", "is_anonymous"}  # fmt: skip
# Methods that raise a session to `aal2`.
_SECOND_STEPS = ("totp", "webauthn", "mfa/recovery_code")


@dataclass(frozen=True)
class Issue:
    """A token that the session with this id is about to issue. The session may not exist yet.

    `decides` are the inputs of the decision before the call of the hook, None if there was no token to ask
    about, and `answer` contains the hook's claims.
    """

    session_id: str = field(default_factory=lambda: str(uuid.uuid4()))
    user_id: str | None = None
    # The session that decides: the token's session, or the one that opens it.
    decided_by: str | None = None
    decides: Deciding | None = None
    answer: dict[str, Any] | None = None

    def confirm(self, tx: Transaction) -> None:
        """Refuse if the inputs of the decision have changed since the hook was asked. Call it with the user
        locked, or the session if it is refreshed.
        """
        present = _deciding(tx, self.user_id, self.decided_by)
        if self.decides is None or not still_decides(self.decides, present):
            raise unavailable()


@dataclass(frozen=True, kw_only=True)
class Token:
    """The next access token of a session."""

    session_id: str
    aal: str
    amr: list[dict[str, Any]]
    lacks_step: bool
    issued_at: int
    user_object: str
    # A column of `memberships_of`.
    memberships: str
    # When the session's user last authenticated.
    authenticated_at: datetime

    @property
    def standing(self) -> Standing:
        """What the session meets requirements of organizations with, when the token is issued."""
        now = datetime.fromtimestamp(self.issued_at, UTC)
        return Standing(self.aal, providers_in(self.amr), self.authenticated_at, now)


@dataclass(frozen=True, kw_only=True)
class IssuedSession(Token):
    """A session with the counter of its next refresh token, and what the token hook was asked about it."""

    counter: int
    issue: Issue | None = None
    # Whether a data breach has exposed the password.
    is_leaked: bool = False
    # The new cookie of a browser's session, if it was raised: for `browser_sessions.keep`.
    cookie: str | None = None


def answered(issue: Issue | None, composed: JsonObject) -> JsonObject:
    """Return the claims to sign, from the claims that were written and the answer of the hook."""
    if issue is None or issue.answer is None:
        raise RuntimeError("a token is issued without its hook")
    # The claims of the hook, with the times and the level that were written meanwhile.
    answer = {name: value for name, value in issue.answer.items() if name not in OWN_CLAIMS}
    own = (OWN_CLAIMS | ({"amr"} & issue.answer.keys())) & composed.keys()
    return answer | {name: composed[name] for name in own}


def _deciding(on: Runner, user_id: str | None, session_id: str | None) -> Deciding | None:
    """Return what decides about a token of a session. A ban that is over decides nothing. Read it before
    the token's claims, and again once the user is locked.
    """
    row = queries.select_deciding(on, user_id=user_id, session_id=session_id)
    if row is None:
        return None
    return Deciding(
        id=row.id,
        role=row.role,
        email=row.email,
        email_confirmed_at=row.email_confirmed_at,
        phone=row.phone,
        phone_confirmed_at=row.phone_confirmed_at,
        app_metadata=row.app_metadata,
        banned_until=row.banned_until if is_banned(row) else None,
        is_anonymous=is_anonymous(row),
        created_at=row.created_at,
        providers=row.providers,
        factors=row.factors,
        memberships=row.memberships,
        session_id=row.session_id,
        aal=row.aal,
        ended_at=row.ended_at,
        factor_id=row.factor_id,
        amr=row.amr,
    )


def about_new(
    asked: Asked,
    hook: TokenHook,
    user_id: str | None,
    method: str,
    *,
    provider: str | None = None,
    authenticated_at: datetime | None = None,
    opener: str | None = None,
) -> Issue:
    """Ask about a new session of a user for a client, which a session on our pages may open.

    `authenticated_at` is when the provider authenticated the user, if it was earlier.
    """
    issue = Issue(user_id=user_id, decided_by=opener)
    return _about_user(asked, hook, issue, method, provider, authenticated_at=authenticated_at)


def about_own(asked: Asked, hook: TokenHook, second_step: str | None) -> Issue:
    """Ask about the session of the caller, who was admitted before. A second step may raise it."""
    issue = Issue(
        session_id=asked.caller.session_id,
        user_id=asked.caller.user_id,
        decided_by=asked.caller.session_id,
    )
    return _about_user(asked, hook, issue, second_step)


def about_refresh(asked: Asked, hook: TokenHook, user_id: str, session_id: str) -> Issue:
    """Ask about the next token of a session."""
    return _about_user(
        asked,
        hook,
        Issue(session_id=session_id, user_id=user_id, decided_by=session_id),
        reason="token_refresh",
    )


def _about_user(
    asked: Asked,
    hook: TokenHook,
    issue: Issue,
    method: str | None = None,
    provider: str | None = None,
    reason: str | None = None,
    authenticated_at: datetime | None = None,
) -> Issue:
    """Ask the hook about the next token of a user, whose session `method` may raise. The hook is told a
    `reason`, by default the last method.
    """
    ids = {"user_id": issue.user_id, "session_id": issue.decided_by}
    decides = _deciding(asked.db, **ids)
    row = queries.select_token(asked.db, **ids) if decides else None
    if row is None or is_banned(row):
        return issue
    step: dict[str, Any] = {"method": method} | ({"provider": provider} if provider else {})
    step |= {"timestamp": int(row.now.timestamp())}
    aal, amr, moment = "aal1", [step], min(authenticated_at or row.now, row.now)
    if row.aal:
        aal, amr, moment = row.aal, row.methods, row.authenticated_at or EPOCH
    if method in _SECOND_STEPS:
        aal, amr, moment = "aal2", [each for each in amr if each["method"] != method] + [step], row.now
    token = Token(
        session_id=issue.session_id,
        aal=aal,
        amr=amr,
        lacks_step=levels.lacks_step(row, aal, asked.parts.policy),
        issued_at=int(row.now.timestamp()),
        user_object=row.user_object,
        memberships=row.memberships,
        authenticated_at=moment,
    )
    asked.noted.note(user_id=issue.user_id)
    answer = hook(asked, compose(asked.parts, token), reason or amr[-1]["method"])
    return replace(issue, decides=decides, answer=answer)


def about_key(
    asked: Asked, hook: TokenHook, user_id: str, compose_with: Callable[["queries.SelectToken"], JsonObject]
) -> Issue:
    """Ask about a token of an API key. `compose_with` returns its claims for a user."""
    issue = Issue(user_id=user_id)
    decides = _deciding(asked.db, user_id, None)
    row = queries.select_token(asked.db, user_id=user_id, session_id=None) if decides else None
    if row is None:
        return issue
    asked.noted.note(user_id=user_id)
    answer = hook(asked, compose_with(row), "api_key")
    return replace(issue, decides=decides, answer=answer)


def compose(parts: Latchkey, token: Token) -> JsonObject:
    """Return the claims of a token."""
    user = json.loads(token.user_object)
    own = {"session_id": token.session_id, "aal": token.aal, "amr": token.amr}
    own |= organizations.claim(token.memberships, token.standing)
    claims = parts.access_tokens.compose(user, token.issued_at, own)
    is_restricted = token.lacks_step and parts.settings.mfa_tokens == SECOND_STEP
    return parts.access_tokens.restricted(claims) if is_restricted else claims
