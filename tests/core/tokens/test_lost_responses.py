"""Refreshes whose responses are lost, and copies of refresh tokens, in any order: who is signed out, and when.

Sessions and those of OpenID clients alike, by the statements of POST /token and POST /oauth/token.
"""

import random
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from typing import Any

import psycopg2
import pytest
from psycopg2.extras import NamedTupleCursor

from sql import Statement, load_statements
from tests.support.openid import make_client

INTERVAL = 60
_SETTINGS = {
    "reuse_interval": INTERVAL,
    "rotation": True,
    "refresh_limit_seconds": 300,
    "refresh_token_lifetime": 2_592_000,
    "mfa_required": "none",
    "auth_method": "none",
    "origin": {"actor": "anonymous"},
}
STATEMENTS = {
    "session": ("refresh_session", "select_refresh_refusal"),
    "client's session": ("refresh_client_session", "select_client_refresh_refusal"),
}


class Service:
    """Sessions of one kind. Refreshes without HTTP, in one transaction that can be taken back."""

    def __init__(self, connection: Any, kind: str, columns: dict[str, Any]) -> None:
        self._cursor = connection.cursor(cursor_factory=NamedTupleCursor)
        self._kind = kind
        self._statements = self._prepared(load_statements(), *STATEMENTS[kind])
        self._values = _SETTINGS | {"client_id": columns.pop("client_id", None)}
        self._columns = {"method": "password"} | columns

    def _prepared(self, statements: dict[str, Statement], *names: str) -> list[Statement]:
        chosen = [statements[name] for name in names]
        for statement in chosen:
            self._cursor.execute(statement.prepare(), {})
        return chosen

    def open_sessions(self, number: int) -> list[str]:
        names, values = ", ".join(self._columns), ", ".join(f"%({name})s" for name in self._columns)
        self._cursor.execute(
            f"INSERT INTO sessions ({names}) SELECT {values} FROM generate_series(1, %(number)s)"
            " RETURNING id::text",
            self._columns | {"number": number},
        )
        return [row.id for row in self._cursor]

    def refresh(self, session: str, counter: int) -> int | None:
        """Return the counter of the token that a refresh returns, or None after it has ended the session."""
        for statement in self._statements:
            values = dict.fromkeys(statement.parameters) | self._values
            self._cursor.execute(statement.execute(), values | {"session_id": session, "counter": counter})
            row = self._cursor.fetchone()
            if row and getattr(row, "state", "live") == "live":
                return int(row.counter)
        assert row is None or row.state in (
            "refresh_token_already_used",
            "refresh_token_not_found",
            "invalid_grant",
        )
        return None

    def pass_time(self, seconds: float, *sessions: str) -> None:
        moved = "refreshed_at = refreshed_at - %(time)s * interval '1 second'"
        self._cursor.execute(
            f"UPDATE sessions SET {moved} WHERE id = ANY (%(ids)s::uuid[])",
            {"time": seconds, "ids": list(sessions)},
        )

    def move(self, session: str, columns: str) -> int:
        """Change a session as another statement does, and return its counter."""
        self._cursor.execute(f"UPDATE sessions SET {columns} WHERE id = %s RETURNING counter", (session,))
        return int(self._cursor.fetchone().counter)

    def ended(self) -> int:
        self._cursor.execute("SELECT count(*) FROM sessions WHERE ended_at IS NOT NULL")
        return int(self._cursor.fetchone().count)

    @contextmanager
    def taken_back(self) -> Iterator[None]:
        self._cursor.execute("SAVEPOINT act")
        yield
        self._cursor.execute("ROLLBACK TO act; RELEASE act")


@pytest.fixture(params=STATEMENTS)
def service(request, alice, database, database_url):
    columns: dict[str, Any] = {"user_id": alice.id}
    if request.param == "client's session":
        client = make_client(database, token_endpoint_auth_method="none")
        granted = "INSERT INTO oauth_grants (user_id, client_id, scopes) VALUES (%(user)s, %(client)s, '{}') RETURNING id::text"
        columns["grant_id"] = database.value(granted, user=alice.id, client=client.id)
        columns |= {"client_id": client.id, "scopes": ["openid"]}
    with closing(psycopg2.connect(database_url)) as connection:
        yield Service(connection, request.param, columns)


def test_none_of_a_thousand_clients_that_lose_responses_is_signed_out(service):
    """One response in twenty is lost, of repeated requests one in two. Clients repeat after seconds or hours."""
    chance = random.Random(0)
    kept = dict.fromkeys(service.open_sessions(1000), 0)
    for _ in range(3):
        waiting, loss = list(kept), 0.05
        while waiting:
            lost = []
            for session in waiting:
                answer = service.refresh(session, kept[session])
                assert answer is not None
                if chance.random() < loss:
                    service.pass_time(chance.choice([5, 61, 8 * 3600]), session)
                    lost.append(session)
                else:
                    kept[session] = answer
            waiting, loss = lost, 0.5
        service.pass_time(3600, *kept)
    assert service.ended() == 0


def test_eight_tabs_that_refresh_twice_each_are_never_signed_out(service):
    """With one store of tokens, each tab sends what it read when it began, in a hundred of the orders."""
    chance, most = random.Random(0), 0
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
        for late in read.values():
            assert service.refresh(session, late) is not None
        most = max(most, newest)
    assert most >= 4
    assert service.ended() == 0


def test_token_from_before_a_move_that_wrote_no_echoes_is_dead(service):
    """A step-up's token kills all before it, and so does a move by a node of 0.5.1, which writes no echoes."""
    for moved in (
        "counter = counter + 2, refreshed_at = now()",
        "used_counter = counter, counter = counter + 1, successor_counter = counter + 1, refreshed_at = now()",
    ):
        (session,) = service.open_sessions(1)
        first = service.refresh(session, 0)
        newest = service.refresh(session, first)
        assert service.refresh(session, 0) == newest
        moved_to = service.move(session, moved)
        assert service.refresh(session, moved_to) == moved_to + 1
        assert service.refresh(session, 0) is None


@dataclass(frozen=True)
class Holder:
    """A holder of a copy of a token: the newest one, and whether it was issued to this holder."""

    token: int
    is_own: bool = False
    has_shown_own: bool = False


def visits(
    service: Service,
    session: str,
    holders: dict[str, Holder],
    depth: int,
    check: Callable[[dict[str, Holder], bool], None],
) -> None:
    """Have the holders show their tokens in each order, more than a minute apart, and lose some responses."""
    for name, holder in holders.items() if depth else ():
        for is_lost in (False, True):
            with service.taken_back():
                service.pass_time(INTERVAL + 1, session)
                answer = service.refresh(session, holder.token)
                shown = Holder(holder.token, holder.is_own, holder.is_own)
                if answer is not None and not is_lost:
                    shown = Holder(answer, True, holder.is_own)
                after = holders | {name: shown}
                check(after, answer is not None)
                if answer is not None:
                    visits(service, session, after, depth - 1, check)


def test_two_holders_of_a_token_end_the_session_when_both_have_come_twice(service):
    """In each order of their visits: first with the copied token, then with their own."""
    (session,) = service.open_sessions(1)
    found = []

    def check(holders: dict[str, Holder], is_live: bool) -> None:
        assert not (is_live and all(holder.has_shown_own for holder in holders.values())), holders
        found.append(is_live)

    for token in (0, 1):
        service.refresh(session, 0)
        holders = dict.fromkeys(("owner", "thief"), Holder(token))
        visits(service, session, holders, 5, check)
    assert found.count(False) > 100


def test_holder_whose_token_nobody_has_copied_is_never_signed_out(service):
    (session,) = service.open_sessions(1)
    answers = []
    visits(service, session, {"owner": Holder(0)}, 7, lambda _, is_live: answers.append(is_live))
    assert answers == [True] * 254
