"""Refreshes: a client exchanges the refresh token of its session for the next tokens."""

from contextlib import AbstractContextManager
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

import structlog

from auth.core.tokens.refresh_tokens import InvalidRefreshToken, RefreshToken
from auth.flows import ends
from auth.flows.sessions import issuing
from auth.flows.sessions.issuing import Issue
from auth.flows.sessions.token_response import Session
from auth.rules import refreshing
from auth.rules.levels import lacks_step
from auth.rules.refreshing import RefreshTokens, Window
from auth.rules.refusals import Refusal
from auth.rules.users import is_banned
from auth.web import audit, facts, limits
from auth.web.asked import Asked
from auth.web.errors import ApiError, found, unavailable
from sql import Runner, acts, queries
from sql.acts import Act

log = structlog.get_logger()
_NOT_FOUND = "refresh.refresh_token_not_found"


@dataclass(frozen=True, slots=True)
class Refreshed:
    """A session, in the columns of `open_session`. The refresh token that it gives now has this counter."""

    session_id: str
    counter: int
    aal: str
    amr: list[dict[str, Any]]
    lacks_step: bool
    issued_at: int
    user_object: str


def refresh(asked: Asked, token: str) -> Session:
    """Exchange a refresh token. A dead one ends its session."""
    try:
        sent = asked.parts.refresh_tokens.read(token)
    except InvalidRefreshToken:
        raise ApiError(_NOT_FOUND) from None
    if issuing.token_hook(asked.parts):
        return _refresh_with_hook(asked, sent)
    window = facts.refresh_window_of(asked.settings)
    with _locked(asked, sent) as (tx, row):
        row = found(row, _NOT_FOUND)
        refusal = _refusal_of(asked, row, sent, window)
        if refusal is None:
            return _refresh(asked, tx, row, sent, window, None)
    raise _refused(asked, row, refusal)


def _refresh_with_hook(asked: Asked, sent: RefreshToken) -> Session:
    """Count the refresh, ask the hook, then refresh. A client could otherwise call the hook without limit."""
    window, own = facts.refresh_window_of(asked.settings), {"session_id": sent.session_id}
    with _locked(asked, sent) as (tx, row):
        row = found(row, _NOT_FOUND)
        refusal = _refusal_of(asked, row, sent, window)
        if refusal is None:
            refreshes, until = refreshing.counted(row.refreshes, row.counted_until, window, row.now)
            tx.later(queries.count_refresh, **own, refreshes=refreshes, counted_until=until)
    if refusal is not None:
        raise _refused(asked, row, refusal)
    issue = issuing.about_refresh(asked, row.user_id, sent.session_id)
    with _locked(asked, sent) as (tx, present):
        if present is None or _refusal_of(asked, present, sent, None):
            raise unavailable()
        issue.confirm(tx)
        return _refresh(asked, tx, present, sent, None, issue)


def _locked(
    asked: Asked, sent: RefreshToken
) -> "AbstractContextManager[tuple[Act, queries.LockSession | None]]":
    ip, user_agent = asked.client["ip"], asked.client["user_agent"]
    return acts.refresh(
        asked.db, queries.lock_session, session_id=sent.session_id, ip=ip, user_agent=user_agent
    )


def _refusal_of(
    asked: Asked, row: "queries.LockSession", sent: RefreshToken, window: Window | None
) -> Refusal | None:
    return refreshing.refusal_of_refresh_token(
        row,
        row,
        facts.refresh_tokens_of(row),
        sent.counter,
        is_of_client=row.is_of_client,
        window=window,
        policy=asked.parts.policy,
        now=row.now,
    )


def _refused(asked: Asked, row: "queries.LockSession", refusal: Refusal) -> ApiError:
    if refusal == "refresh.refresh_token_already_used":
        end_reused(asked, row.user_id, session_id=row.session_id)
        return ApiError(refusal)
    asked.noted.note(user_id=row.user_id)
    if refusal == "over_request_rate_limit":
        return refused_by_limit(asked, row)
    if refusal == _NOT_FOUND and _is_banned(asked, row.user_id):
        return ApiError("refresh.user_banned")
    return ApiError(refusal)


def _is_banned(asked: Asked, user_id: str) -> bool:
    """Whether a user is banned now. The ban may have ended the session while a refresh waited for its lock:
    after the wait, `lock_session` reads again only the session.
    """
    person = queries.select_person(asked.db, user_id=user_id, session_id=None)
    return person is not None and is_banned(person, person.now)


def _refresh(
    asked: Asked,
    tx: Act,
    row: "queries.LockSession",
    sent: RefreshToken,
    window: Window | None,
    issue: Issue | None,
) -> Session:
    rotates = asked.settings.refresh_token_rotation
    counter = move(asked, tx, row, sent.counter, rotates=rotates, window=window, session_id=row.session_id)
    return Session(_refreshed(asked, row, counter), issue)


def renew(asked: Asked, act: Act, session_id: str) -> Refreshed:
    """Give a session whose user is locked its next tokens. Its earlier ones stay valid, and nothing is
    counted.
    """
    client = {"ip": asked.client["ip"], "user_agent": asked.client["user_agent"]}
    row = found(act.lock(queries.lock_session, session_id=session_id, **client), "session_not_found")
    known = facts.refresh_tokens_of(row)
    interval = timedelta(seconds=asked.settings.refresh_reuse_interval)
    new = refreshing.refreshed(
        known, known.counter, rotates=True, reuse_interval=interval, window=None, now=row.now
    )
    write(act, session_id, new)
    return _refreshed(asked, row, new.counter)


def _refreshed(asked: Asked, row: "queries.LockSession", counter: int) -> Refreshed:
    return Refreshed(
        session_id=row.session_id,
        counter=counter,
        aal=row.aal,
        amr=row.amr,
        lacks_step=lacks_step(row, row.aal, asked.parts.policy),
        issued_at=int(row.now.timestamp()),
        user_object=row.user_object,
    )


# For the sessions of users and of applications.


def move(
    asked: Asked,
    tx: Act,
    row: "facts.RefreshFacts",
    sent: int,
    *,
    rotates: bool,
    window: Window | None,
    **details: str | None,
) -> int:
    """Write what a refresh changes, and return the counter of the next refresh token. Add the headers
    of the limit.
    """
    interval = timedelta(seconds=asked.settings.refresh_reuse_interval)
    known, now = facts.refresh_tokens_of(row), row.now
    new = refreshing.refreshed(known, sent, rotates=rotates, reuse_interval=interval, window=window, now=now)
    act = refreshing.act_of_refresh(new, sent, rotates=rotates, is_same_client=row.is_same_client, now=now)
    if act:
        audit.record(tx, row.user_id, None, [act], [], **details)
    tx.later(write, row.session_id, new)
    if asked.settings.rate_limits_enabled:
        amount = asked.settings.rate_limit_refresh.amount
        seconds = (new.counted_until - now).total_seconds()
        asked.noted.add_window(limits.Window(amount, amount - new.refreshes, seconds))
    return new.counter


def write(on: Runner, session_id: str, tokens: RefreshTokens) -> int:
    """Write what a session keeps of its refresh tokens."""
    echoes = {
        counter: {used: until.isoformat() for used, until in uses.items()}
        for counter, uses in (tokens.echoes or {}).items()
    }
    return queries.move_session(
        on,
        session_id=session_id,
        counter=tokens.counter,
        used_counter=tokens.used_counter,
        successor_counter=tokens.successor_counter,
        refreshed_at=tokens.refreshed_at,
        refreshes=tokens.refreshes,
        counted_until=tokens.counted_until,
        echoes=echoes or None,
    )


def refused_by_limit(asked: Asked, row: "facts.RefreshFacts") -> ApiError:
    """Return the refusal of a refresh that is one too many, and add the headers of its limit."""
    seconds = (row.counted_until - row.now).total_seconds()
    asked.noted.add_window(limits.Window(asked.settings.rate_limit_refresh.amount, 0, seconds))
    return limits.refusal("over_request_rate_limit", seconds)


def end_reused(asked: Asked, user_id: str, **details: str | None) -> None:
    """End the session of a dead token, which stays dead, with those that it opened.

    Not in the act of the refresh: it waits for the lock of the user, and acts that hold this wait for the
    session.
    """
    with acts.on(asked.db, user_id) as act:
        act.read(queries.select_person, user_id=user_id, session_id=None)
        if ends.end(act, user_id, details["session_id"], "refresh_token_reused", voids=False):
            audit.record(act, user_id, None, ["refresh_token_reused"], [], **details)
    log.warning("refresh_token_reused", user_id=user_id, **details, **asked.client)
