"""Refreshes: a client exchanges the refresh token of its session for the next tokens."""

from dataclasses import fields
from typing import Any

import structlog

from auth.core.tokens.refresh_tokens import InvalidRefreshToken, RefreshToken
from auth.flows import ends, facts
from auth.flows.sessions import issuing
from auth.flows.sessions.issuing import Issue, IssuedSession
from auth.registry import TokenHook
from auth.rules.levels import lacks_step
from auth.rules.policy import RefreshWindow
from auth.rules.refreshing import TokenState, counted, entry_of_refresh, refreshed, refusal_of_refresh
from auth.rules.refusals import Refusal
from auth.web import audit, limits
from auth.web.asked import Asked
from auth.web.errors import ApiError, found, unavailable
from sql import acts, queries
from sql.acts import Act

log = structlog.get_logger()
_NOT_FOUND = "refresh.refresh_token_not_found"


def refresh(asked: Asked, token: str) -> IssuedSession:
    """Exchange a refresh token. A dead one ends its session."""
    try:
        sent = asked.parts.refresh_tokens.read(token)
    except InvalidRefreshToken:
        raise ApiError(_NOT_FOUND) from None
    if hook := asked.parts.token_hook:
        return _refresh_with_hook(asked, hook, sent)
    policy, own = asked.parts.policy, {"session_id": sent.session_id}
    with acts.refresh(asked.db, queries.lock_session, **own, **asked.device) as (act, row):
        row = found(row, _NOT_FOUND)
        refusal = refusal_of_refresh(row, sent.counter, policy.refresh_window, policy)
        if refusal is None:
            rotates = asked.settings.refresh_token_rotation
            window = policy.refresh_window
            counter = move(asked, act, row, sent.counter, rotates=rotates, window=window, **own)
            return _session(asked, row, counter, None)
    raise _refused(asked, row, refusal)


def _refresh_with_hook(asked: Asked, hook: TokenHook, sent: RefreshToken) -> IssuedSession:
    """Count the refresh, ask the hook, then refresh. A client could otherwise call the hook without limit."""
    policy, own = asked.parts.policy, {"session_id": sent.session_id}
    with acts.refresh(asked.db, queries.lock_session, **own, **asked.device) as (act, row):
        row = found(row, _NOT_FOUND)
        refusal = refusal_of_refresh(row, sent.counter, policy.refresh_window, policy)
        if refusal is None:
            refreshes, until = counted(row.refreshes, row.counted_until, policy.refresh_window, row.now)
            act.later(queries.count_refresh, **own, refreshes=refreshes, counted_until=until)
    if refusal is not None:
        raise _refused(asked, row, refusal)
    issue = issuing.about_refresh(asked, hook, row.user_id, sent.session_id)
    with acts.refresh(asked.db, queries.lock_session, **own, **asked.device) as (act, present):
        if present is None or refusal_of_refresh(present, sent.counter, None, policy):
            raise unavailable()
        issue.confirm(act)
        rotates = asked.settings.refresh_token_rotation
        counter = move(asked, act, present, sent.counter, rotates=rotates, window=None, **own)
        return _session(asked, present, counter, issue)


def _refused(asked: Asked, row: "queries.LockSession", refusal: Refusal) -> ApiError:
    if refusal == "refresh.refresh_token_already_used":
        end_reused(asked, row.user_id, session_id=row.session_id)
        return ApiError(refusal)
    asked.noted.note(user_id=row.user_id)
    if refusal == "over_request_rate_limit":
        return refused_by_limit(asked, row)
    return ApiError(refusal)


def renew(asked: Asked, act: Act, issue: Issue | None) -> IssuedSession:
    """Give the caller's session, whose user is locked, its next tokens. Its earlier ones stay valid, and
    nothing is counted.
    """
    own, interval = asked.caller.session_id, asked.parts.policy.reuse_interval
    row = found(act.lock(queries.lock_session, session_id=own, **asked.device), "session_not_found")
    new = refreshed(row, row.counter, rotates=True, reuse_interval=interval, window=None)
    queries.move_session(act, session_id=own, **_columns(new))
    return _session(asked, row, new.counter, issue)


def _session(asked: Asked, row: "queries.LockSession", counter: int, issue: Issue | None) -> IssuedSession:
    return IssuedSession(
        session_id=row.session_id,
        counter=counter,
        aal=row.aal,
        amr=row.amr,
        lacks_step=lacks_step(row, row.aal, asked.parts.policy),
        issued_at=int(row.now.timestamp()),
        user_object=row.user_object,
        memberships=row.memberships,
        authenticated_at=row.authenticated_at,
        issue=issue,
    )


# The functions below also serve the sessions of applications.


def move(
    asked: Asked,
    act: Act,
    row: "facts.RefreshFacts",
    sent: int,
    *,
    rotates: bool,
    window: RefreshWindow | None,
    **details: str | None,
) -> int:
    """Write what a refresh changes, and return the next counter. Add the headers of the limit."""
    interval, now = asked.parts.policy.reuse_interval, row.now
    new = refreshed(row, sent, rotates=rotates, reuse_interval=interval, window=window)
    entry = entry_of_refresh(new, sent, rotates=rotates, is_same_client=row.is_same_client, now=now)
    if entry:
        audit.record(act, row.user_id, None, [entry], [], **details)
    act.later(queries.move_session, session_id=row.session_id, **_columns(new))
    if asked.settings.rate_limits_enabled:
        amount = asked.settings.rate_limit_refresh.amount
        seconds = (new.counted_until - now).total_seconds()
        asked.noted.add_window(limits.LimitWindow(amount, amount - new.refreshes, seconds))
    return new.counter


def _columns(tokens: TokenState) -> dict[str, Any]:
    # `asdict` would copy each value: a tenth of a refresh.
    return {each.name: getattr(tokens, each.name) for each in fields(tokens)}


def refused_by_limit(asked: Asked, row: "facts.RefreshFacts") -> ApiError:
    """Return the refusal of a refresh that is one too many, and add the headers of its limit."""
    seconds = (row.counted_until - row.now).total_seconds()
    asked.noted.add_window(limits.LimitWindow(asked.settings.rate_limit_refresh.amount, 0, seconds))
    return limits.refusal("over_request_rate_limit", seconds)


def end_reused(asked: Asked, user_id: str, **details: str | None) -> None:
    """End the session of a dead token, which stays dead, with those that it opened.

    Not in the act of the refresh: it waits for the lock of the user, and acts that hold this wait for the
    session.
    """
    with acts.on(asked.db, user_id) as act:
        act.read(queries.select_person, user_id=user_id, session_id=None)
        if ends.end(act, user_id, details["session_id"], "refresh_token_reused"):
            audit.record(act, user_id, None, ["refresh_token_reused"], [], **details)
    log.warning("refresh_token_reused", user_id=user_id, **details, **asked.client)
