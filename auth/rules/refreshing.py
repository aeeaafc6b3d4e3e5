"""Which refresh token is good, an echo, or ends the session, and what a refresh changes (rule 4).

Refresh tokens of a session are numbered. `sent` is the number of the client's token.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Literal, Protocol

from auth.rules.policy import Policy, RefreshWindow
from auth.rules.refusals import Refusal
from auth.rules.sessions import Session, end_of_session
from auth.rules.users import User, is_banned

# The numbers of used tokens, with the time when each stops being an echo, by the counter of the session. Both
# numbers and times are texts, as in JSON.
Echoes = Mapping[str, Mapping[str, str]]
# A client that refreshes without end would make its session's row grow.
_MOST_ECHOES = 8


class KnownTokens(Protocol):
    """A row with what a session keeps of its refresh tokens: `counter` is the number of the newest.

    `used_counter` is the newest that was used, and `successor_counter` the token that it gave. If that is not
    `counter`, a second step has moved it, or release 0.3.0. `echoes` has the tokens that were used before
    `used_counter`: they count no more once `counter` has moved. `refreshes` counts in a window that ends at
    `counted_until`.
    """

    @property
    def now(self) -> datetime: ...
    @property
    def counter(self) -> int: ...
    @property
    def used_counter(self) -> int | None: ...
    @property
    def successor_counter(self) -> int | None: ...
    @property
    def refreshed_at(self) -> datetime: ...
    @property
    def refreshes(self) -> int: ...
    @property
    def counted_until(self) -> datetime: ...
    @property
    def echoes(self) -> Echoes | None: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class TokenState:
    """What a refresh leaves of `KnownTokens`."""

    counter: int
    used_counter: int | None
    successor_counter: int | None
    refreshed_at: datetime
    refreshes: int
    counted_until: datetime
    echoes: Echoes | None


class SessionToRefresh(User, Session, KnownTokens, Protocol):
    """A row with a session, its user and its tokens."""

    @property
    def is_of_client(self) -> bool: ...


def refusal_of_refresh(
    row: SessionToRefresh, sent: int, window: RefreshWindow | None, policy: Policy
) -> Refusal | None:
    """Refuse a session that gives no token now, then a dead token, then a refresh beyond the limit.

    A session that lacks a step is not refused: it gets tokens of the audience `second_step`. A session of an
    application (`is_of_client`) is not refreshed like one of the user's: `refusal_of_client_session` refuses
    it, then `refusal_of_token`.
    """
    if is_banned(row):
        return "refresh.user_banned"
    end = end_of_session(row, row, policy)
    if end == "session_expired":
        return "refresh.session_expired"
    if end is not None or row.is_of_client:
        return "refresh.refresh_token_not_found"
    return refusal_of_token(row, sent, window)


def refusal_of_token(tokens: KnownTokens, sent: int, window: RefreshWindow | None) -> Refusal | None:
    """Refuse a dead token, of which two clients have a copy: the session ends. Then refuse a refresh beyond
    the limit of the `window`, which is None for a refresh that is counted already.

    A token is dead if the session has skipped it, or if its successor was used and it is no echo. This comes
    before the limit, because a thief could hide the theft by using the limit up. A token ahead of the session
    is good: the database was restored from a backup.

    An example, within the reuse interval of each use:
    - T1 gives T2. T1 again, as the last used, gives T2 too; after the interval it gives T3, and T2 is dead.
    - T2 gives T3. T1 is an echo now, and gives T3 too; after the interval T1 is dead.
    - T3 gives T4. T1 and T2 are echoes, and give T4.
    """
    is_successor_newest = tokens.successor_counter == tokens.counter
    last_used = tokens.used_counter if is_successor_newest else tokens.counter - 1
    if sent < tokens.counter and sent != last_used and not is_echo(tokens, sent):
        return "refresh.refresh_token_already_used"
    if window is None or window.most is None:
        return None
    is_used_up = tokens.refreshes >= window.most and tokens.counted_until > tokens.now
    return "over_request_rate_limit" if is_used_up else None


def is_echo(tokens: KnownTokens, sent: int) -> bool:
    """Whether a token was used before the last one, and within the reuse interval: a late tab shows it."""
    until = (tokens.echoes or {}).get(str(tokens.counter), {}).get(str(sent))
    return until is not None and datetime.fromisoformat(until) > tokens.now


def refreshed(
    tokens: KnownTokens,
    sent: int,
    *,
    rotates: bool,
    reuse_interval: timedelta,
    window: RefreshWindow | None,
) -> TokenState:
    """What a token that is not refused changes. The newest and one ahead give a successor.

    A used one first returns the present successor, because requests of one client may cross. After the reuse
    interval the response was lost: a new successor is given, and the present one is dead.
    """
    echo = is_echo(tokens, sent)
    is_lost = not echo and tokens.refreshed_at <= tokens.now - reuse_interval
    is_new = sent >= tokens.counter or is_lost
    counter = max(sent, tokens.counter) + rotates if is_new else tokens.counter
    refreshes, counted_until = counted(tokens.refreshes, tokens.counted_until, window, tokens.now)
    return TokenState(
        counter=counter,
        refreshed_at=tokens.now if is_new else tokens.refreshed_at,
        counted_until=counted_until,
        refreshes=refreshes,
        used_counter=tokens.used_counter if echo else sent,
        successor_counter=counter,
        echoes=_echoes_after(tokens, sent, rotates, reuse_interval),
    )


def counted(
    refreshes: int, until: datetime, window: RefreshWindow | None, now: datetime
) -> tuple[int, datetime]:
    """The number of refreshes of a session or API key after another one, and when they begin anew.

    `window` is None for a refresh that is counted already.
    """
    if until > now:
        return refreshes + (window is not None), until
    return 1, now + (window.age if window else timedelta())


def entry_of_refresh(
    tokens: TokenState, sent: int, *, rotates: bool, is_same_client: bool, now: datetime
) -> Literal["refresh_answer_lost", "refresh_token_repeated"] | None:
    """What the audit log says of a refresh, from the session as the refresh left it.

    `is_same_client` is whether the session began at the same address, with the same user agent.
    """
    if tokens.refreshed_at == now:
        return "refresh_answer_lost" if tokens.counter > sent + rotates else None
    return None if is_same_client else "refresh_token_repeated"


def _echoes_after(tokens: KnownTokens, sent: int, rotates: bool, reuse_interval: timedelta) -> Echoes | None:
    """The newest that still are echoes, with the token that was used before this one."""
    if sent < tokens.counter:
        return tokens.echoes
    earlier = (tokens.echoes or {}).get(str(tokens.counter), {})
    echoes = {used: until for used, until in earlier.items() if datetime.fromisoformat(until) > tokens.now}
    until = tokens.refreshed_at + reuse_interval
    if tokens.successor_counter == tokens.counter and tokens.used_counter is not None and until > tokens.now:
        echoes[str(tokens.used_counter)] = until.isoformat()
    newest = sorted(echoes, key=int)[-_MOST_ECHOES:]
    return {str(sent + rotates): {used: echoes[used] for used in newest}} if newest else None
