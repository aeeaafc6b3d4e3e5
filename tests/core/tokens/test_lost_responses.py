"""Refreshes whose responses are lost, and copies of refresh tokens, in any order: who is signed out, and when."""

import random
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime, timedelta

import pytest

from auth.rules.policy import RefreshWindow
from auth.rules.refreshing import TokenState, refreshed, refusal_of_token

INTERVAL = 60
WINDOW = RefreshWindow(most=None, age=timedelta(minutes=5))
_NOW = datetime(2026, 1, 1, tzinfo=UTC)


@dataclass(frozen=True, kw_only=True)
class _Tokens(TokenState):
    now: datetime


class Service:
    """Sessions, each with a clock of its own. A refresh that is refused ends its session."""

    def __init__(self) -> None:
        self._sessions: dict[int, _Tokens | None] = {}

    def open_sessions(self, number: int) -> list[int]:
        tokens = _Tokens(
            now=_NOW,
            counter=0,
            used_counter=None,
            successor_counter=None,
            refreshed_at=_NOW,
            refreshes=0,
            counted_until=_NOW,
            echoes=None,
        )
        numbers = range(len(self._sessions), len(self._sessions) + number)
        self._sessions |= dict.fromkeys(numbers, tokens)
        return list(numbers)

    def refresh(self, session: int, counter: int) -> int | None:
        """Return the counter of the token that a refresh returns, or None after it has ended the session."""
        tokens = self._sessions[session]
        if tokens is None:
            return None
        if refusal_of_token(tokens, counter, WINDOW):
            self._sessions[session] = None
            return None
        new = refreshed(
            tokens, counter, rotates=True, reuse_interval=timedelta(seconds=INTERVAL), window=WINDOW
        )
        self._sessions[session] = _Tokens(**asdict(new), now=tokens.now)
        return new.counter

    def pass_time(self, seconds: float, *sessions: int) -> None:
        for session in sessions:
            if tokens := self._sessions[session]:
                self._sessions[session] = replace(tokens, now=tokens.now + timedelta(seconds=seconds))

    def count_ended(self) -> int:
        return sum(tokens is None for tokens in self._sessions.values())

    @contextmanager
    def rolled_back(self) -> Iterator[None]:
        sessions = dict(self._sessions)
        yield
        self._sessions = sessions


@pytest.fixture
def service():
    return Service()


def test_none_of_a_thousand_clients_that_lose_responses_is_signed_out(service):
    """One response in twenty is lost, of repeated requests one in two. Clients repeat after seconds or hours."""
    chance = random.Random(0)
    counters = dict.fromkeys(service.open_sessions(1000), 0)
    for _ in range(3):
        sessions, loss = list(counters), 0.05
        while sessions:
            losing = []
            for session in sessions:
                answer = service.refresh(session, counters[session])
                assert answer is not None
                if chance.random() < loss:
                    service.pass_time(chance.choice([5, 61, 8 * 3600]), session)
                    losing.append(session)
                else:
                    counters[session] = answer
            sessions, loss = losing, 0.5
        service.pass_time(3600, *counters)
    assert service.count_ended() == 0


def test_eight_tabs_that_refresh_twice_each_are_never_signed_out(service):
    """The tabs share one store. Each sends the token that it read when it began, in a hundred of the orders."""
    chance, highest = random.Random(0), 0
    for session in service.open_sessions(100):
        newest, read = 0, dict[int, int]()
        steps = [(step, tab) for tab in range(8) for step in ("read", "send")] * 2
        chance.shuffle(steps)
        for step, tab in steps:
            if step == "send" and tab in read:
                answer = service.refresh(session, read.pop(tab))
                assert answer is not None
                newest = max(newest, answer)
            elif step == "read":
                read.setdefault(tab, newest)
        for token in read.values():
            assert service.refresh(session, token) is not None
        highest = max(highest, newest)
    assert highest >= 4
    assert service.count_ended() == 0


@dataclass(frozen=True)
class Holder:
    """A holder of a copy of a token: the newest one, and whether it was issued to this holder."""

    token: int
    is_own: bool = False
    has_shown_own: bool = False


def visits(
    service: Service,
    session: int,
    holders: dict[str, Holder],
    depth: int,
    check: Callable[[dict[str, Holder], bool], None],
) -> None:
    """Let the holders send their tokens in each order, more than a minute apart, and lose some responses."""
    for name, holder in holders.items() if depth else ():
        for is_lost in (False, True):
            with service.rolled_back():
                service.pass_time(INTERVAL + 1, session)
                answer = service.refresh(session, holder.token)
                visitor = Holder(holder.token, holder.is_own, holder.is_own)
                if answer is not None and not is_lost:
                    visitor = Holder(answer, True, holder.is_own)
                after = holders | {name: visitor}
                check(after, answer is not None)
                if answer is not None:
                    visits(service, session, after, depth - 1, check)


def test_two_holders_of_a_token_end_the_session_when_both_have_come_twice(service):
    """In each order of their visits: first with the copied token, then with their own."""
    (session,) = service.open_sessions(1)
    verdicts = []

    def check(holders: dict[str, Holder], is_live: bool) -> None:
        assert not (is_live and all(holder.has_shown_own for holder in holders.values())), holders
        verdicts.append(is_live)

    for token in (0, 1):
        service.refresh(session, 0)
        holders = dict.fromkeys(("owner", "thief"), Holder(token))
        visits(service, session, holders, 5, check)
    assert verdicts.count(False) > 100
