"""The end of a sign-in: its session, and the token response (RFC 6749, section 5.1) or the authorization
code (RFC 7636) for it."""

import hmac
import json
from dataclasses import dataclass, field
from typing import Any

from auth.core import promises
from auth.core.passwords import leaked
from auth.core.tokens import one_time
from auth.flows.messages import outgoing
from auth.flows.sessions.issuing import Issue, about_new, compose, is_asked
from auth.web import audit
from auth.web.asked import Asked
from auth.web.context import Latchkey
from auth.web.errors import ApiError
from sql import Transaction, queries

# In the format of GoTrue's clients.
_WEAK_PASSWORD: dict[str, Any] = {
    "weak_password": {
        "message": "This password is known from data breaches. Choose another one.",
        "reasons": [leaked.REASON],
    }
}


@dataclass(frozen=True)
class Session:
    """A row of `open_session`, and the `Issue` of its token if it is for a client."""

    row: Any
    issue: Issue
    # Whether a data breach has exposed the password.
    is_leaked: bool = False


@dataclass(frozen=True)
class Outcome:
    """The result of a sign-in: a `Session`, an authorization code, or a refusal."""

    session: Any = None
    authorization_code: str | None = None
    refusal: ApiError | None = None
    redirect_to: str | None = None
    # Further members of the response: `recent_changes`, and `password_removed` by the first proof.
    members: dict[str, Any] = field(default_factory=dict)
    # Another browser requested the link: the application gets nothing.
    is_elsewhere: bool = False
    # The target of a link or code.
    purpose: str | None = None


def open_session(
    asked: Asked, tx: Transaction, user_id: str, method: str, issue: Issue, *, is_handed_over: bool = False
) -> "queries.OpenSession":
    """Open a session of a user whose row is locked, and return its row."""
    issue.confirm(tx)
    network = None if is_handed_over else asked.client["network"]
    columns = {"session_id": issue.session_id, "user_id": user_id, "method": method}
    return queries.open_session(tx, **columns, browser=asked.browser, **asked.client | {"network": network})


def notify_of_sign_in(
    asked: Asked, tx: Transaction, user_id: str, row: Any, *, address: str | None = None
) -> None:
    """Notify a user of a sign-in that `is_new`, unless it was by a message to the same `address`."""
    user = queries.lock_user(tx, user_id=user_id) if row.is_new else None
    if user and (address is None or outgoing.proved_address(asked, user) != address):
        outgoing.notify(asked, tx, user, "new_sign_in", lacks_step=row.lacks_step)


def raise_session(
    asked: Asked, tx: Transaction, session_id: str, method: str, factor_id: str | None
) -> "queries.RaiseSession":
    """Raise a session of a user whose row is locked to `aal2`, and return its row."""
    columns = {"session_id": session_id, "method": method, "factor_id": factor_id}
    return queries.raise_session(tx, **columns, network=asked.client["network"])


def token_response(parts: Latchkey, session: Session, **members: Any) -> str:
    """Return the body of the response, as JSON."""
    # Postgres has written the user as JSON.
    body = json.dumps(members | tokens(parts, session))
    return f'{body[:-1]}, "user": {session.row.user_object}}}'


def tokens(parts: Latchkey, session: Session) -> dict[str, Any]:
    row, access_tokens = session.row, parts.access_tokens
    return (_WEAK_PASSWORD if session.is_leaked else {}) | {
        "access_token": access_tokens.sign(session.issue.claims(parts, compose(parts, row, row.session_id))),
        "token_type": "bearer",
        "expires_in": access_tokens.lifetime,
        "expires_at": row.issued_at + access_tokens.lifetime,
        "refresh_token": parts.refresh_tokens.make(row.session_id, row.counter),
    }


def write_code(
    asked: Asked,
    tx: Transaction,
    user_id: str,
    code_challenge: str,
    method: str,
    opened_by: str | None = None,
    provider: str | None = None,
    auth_time: float | None = None,
    *,
    tells: bool = False,
) -> str:
    """Write a code and return it. `opened_by` is the session on our pages that passes it on, if any.

    If the sign-in did not use a message, `tells` sends a notice of a new sign-in.
    """
    code = one_time.new_token()
    row = queries.write_authorization_code(
        tx,
        user_id=user_id,
        code_hash=one_time.hash_token(code),
        code_challenge=code_challenge,
        method=method,
        opened_by=opened_by,
        provider=provider,
        auth_time=auth_time,
        network=asked.client["network"],
        browser=asked.browser,
        authorization_code_lifetime=promises.AUTHORIZATION_CODE_LIFETIME,
    )
    if tells:
        notify_of_sign_in(asked, tx, user_id, row)
    return code


def exchange(asked: Asked, code: str, code_challenge: str) -> Session:
    """Open a session for a code (RFC 7636). Reuse of the code ends the session."""
    code_hash = one_time.hash_token(code)
    issue = _issue_for_code(asked, code_hash, code_challenge)
    with asked.db.transaction() as tx:
        owner = queries.lock_owner_of_authorization_code(tx, code_hash=code_hash)
        asked.noted.note(user_id=owner and owner.id)
        known = queries.select_authorization_code(tx, code_hash=code_hash)
        if owner is None or known is None:
            raise ApiError("flow_state_not_found")
        if not hmac.compare_digest(known.code_challenge, code_challenge):
            raise ApiError("bad_code_verifier")
        if known.session_id is None:
            if owner.is_banned:
                raise ApiError("user_banned")
            row = open_application_session(
                asked, tx, owner, known.method, issue, known.opened_by, known.provider
            )
            queries.mark_authorization_code_used(tx, code_hash=code_hash, session_id=row.session_id)
            return Session(row, issue)
        reason = "authorization_code_reused"
        queries.end_access(tx, user_id=owner.id, session_id=known.session_id, reason=reason, voids=False)
        audit.record(tx, owner.id, None, ["authorization_code_reused"], [], session_id=known.session_id)
    raise ApiError("flow_state_not_found")


def _issue_for_code(asked: Asked, code_hash: bytes | None, code_challenge: str) -> Issue:
    """Ask the token hook about the session of a code, unless `exchange` refuses the code."""
    known = None
    if is_asked(asked, for_client=True):
        known = queries.select_authorization_code(asked.db, code_hash=code_hash)
    if known and (known.session_id or not hmac.compare_digest(known.code_challenge, code_challenge)):
        known = None
    if known is None:
        return about_new(asked, None, "", for_client=True)
    provider, opener = known.provider, known.opened_by
    return about_new(asked, known.user_id, known.method, for_client=True, provider=provider, opener=opener)


def open_application_session(
    asked: Asked,
    tx: Transaction,
    owner: Any,
    method: str,
    issue: Issue,
    opened_by: str | None,
    provider: str | None = None,
) -> "queries.OpenSession":
    """Open a session for an application, perhaps from a session on our pages, and return its row."""
    row = open_session(asked, tx, owner.id, method, issue, is_handed_over=opened_by is not None)
    if provider:
        row = row._replace(amr=queries.record_provider(tx, session_id=row.session_id, provider=provider).amr)
    if opened_by:
        level = queries.mark_opened_by(tx, session_id=row.session_id, opened_by=opened_by)
        row = row._replace(**level._asdict())
    details = {"method": method, "session_id": row.session_id}
    audit.record(tx, owner.id, owner.email, ["signed_in"], ["auth.login"], **details)
    return row
