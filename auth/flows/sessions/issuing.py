"""Asks the token hook, between the check of a sign-in and its session.

The hook is called outside any transaction: the claims are read before, and the session is written only if the
inputs of the decision have not changed. Changes of the user by the sign-in (a new user, a linked identity, a
proved address) are committed before, because the token contains them. A link or code stays valid until the
session is written. Call the functions here outside any transaction, once the sign-in has been accepted.
"""

import json
import uuid
from dataclasses import dataclass, field, replace
from typing import Any

from auth.core.tokens.access_tokens import SECOND_STEP
from auth.extensions import TokenHook
from auth.web.asked import Asked
from auth.web.context import Latchkey
from auth.web.errors import unavailable
from sql import Transaction, queries

# Claims that the hook may not change.
OWN_CLAIMS = {"sub", "aud", "exp", "iat", "nbf", "session_id", "client_id", "api_key_id", "scope", "nonce",
              "aal", "next_aal", "is_anonymous"}  # fmt: skip
# The digest without a token to ask about.
_NOTHING = ""


@dataclass(frozen=True)
class Issue:
    """A token that the session with this id is about to issue. The session may not exist yet.

    Without a token hook, or for a session on our pages, it is only the id. Otherwise `decides` is a digest of
    the inputs of the decision before the call of the hook, and `answer` contains the hook's claims.
    """

    session_id: str = field(default_factory=lambda: str(uuid.uuid4()))
    user_id: str | None = None
    # The session that decides: the token's session, or the one that opens it.
    decided_by: str | None = None
    decides: str | None = None
    answer: dict[str, Any] | None = None

    def confirm(self, tx: Transaction) -> None:
        """Lock the user. Refuse if the inputs of the decision have changed since the hook was asked."""
        if self.decides is not None:
            now = queries.lock_what_decides(tx, user_id=self.user_id, session_id=self.decided_by)
            if now.decides != self.decides:
                raise unavailable()

    def claims(self, parts: Latchkey, composed: dict[str, Any]) -> dict[str, Any]:
        """Return the claims to sign, from the claims that were written."""
        if self.answer is None:
            if token_hook(parts):
                raise RuntimeError("a token is issued without its hook")
            return composed
        # The answer, with the times and the level that were written meanwhile.
        answered = {name: value for name, value in self.answer.items() if name not in OWN_CLAIMS}
        written = (OWN_CLAIMS | {"amr"} & self.answer.keys()) & composed.keys()
        return answered | {name: composed[name] for name in written}


# Not for the session of a browser on our pages.
def is_asked(asked: Asked, *, for_client: bool) -> bool:
    return for_client and token_hook(asked.parts) is not None


def about_new(
    asked: Asked,
    user_id: str | None,
    method: str,
    *,
    for_client: bool,
    provider: str | None = None,
    opener: str | None = None,
) -> Issue:
    """Ask the hook about a new session of a user, which a session on our pages may open."""
    issue = Issue(user_id=user_id, decided_by=opener)
    if not is_asked(asked, for_client=for_client):
        return issue
    return _about_user(asked, issue, method=method, provider=provider, raises=method == "webauthn")


def about_own(asked: Asked, second_step: str | None, *, for_client: bool) -> Issue:
    """Ask the hook about the caller's session, which a second step may raise."""
    issue = Issue(asked.caller.session_id, asked.caller.user_id, asked.caller.session_id)
    if not is_asked(asked, for_client=for_client):
        return issue
    asked.live_caller()
    return _about_user(asked, issue, method=second_step, provider=None, raises=second_step is not None)


def about_refresh(parts: Latchkey, session_id: str, counter: int) -> Issue:
    """Count a refresh, then ask the hook, which must be set."""
    row = queries.begin_refresh(parts.db, session_id=session_id, counter=counter)
    return answered(parts, Issue(session_id), row and compose(parts, row, session_id), row, "token_refresh")


def _about_user(asked: Asked, issue: Issue, **steps: Any) -> Issue:
    row = None
    if issue.user_id:
        known = issue.user_id, issue.decided_by
        row = queries.select_token(asked.db, user_id=known[0], session_id=known[1], **steps)
    return answered(
        asked.parts,
        issue,
        row and compose(asked.parts, row, issue.session_id),
        row,
        row.amr[-1]["method"] if row else "",
    )


def answered(parts: Latchkey, issue: Issue, claims: dict[str, Any] | None, row: Any, method: str) -> Issue:
    """Ask the hook about the claims of a row with `decides`, if it has any."""
    ask = token_hook(parts)
    if ask is None or claims is None:
        return replace(issue, decides=_NOTHING)
    return replace(issue, decides=row.decides, answer=ask(claims, method))


def token_hook(parts: Latchkey) -> TokenHook | None:
    return next((hook for each in parts.extensions if (hook := each.token_hook())), None)


def compose(parts: Latchkey, row: Any, session_id: str) -> dict[str, Any]:
    """Return the claims of a session, a row of `open_session`."""
    own = {"session_id": session_id, "aal": row.aal, "amr": row.amr}
    claims = parts.access_tokens.compose(json.loads(row.user_object), row.issued_at, own)
    is_restricted = row.lacks_step and parts.settings.mfa_tokens == SECOND_STEP
    return parts.access_tokens.restricted(claims) if is_restricted else claims
