"""Connections to Postgres, each bounded in what it may wait for, and the pool that lends them.

psycopg2's own pool closes what is returned above its minimum, connects all of the minimum at once, and raises
at once when it is exhausted; this one is a stack that connects late and waits a little.
"""

import queue
import select
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import psycopg2
from psycopg2.extensions import POLL_OK, POLL_READ, POLL_WRITE, TRANSACTION_STATUS_IDLE
from psycopg2.extensions import connection as PlainConnection

from sql.hosts import UnansweredError, connect_to_any

# Seconds. Postgres ends a statement itself after its own time-outs below; ours holds where Postgres is frozen
# or the network is silent, and is a little longer than lock_timeout, so that it may still say why.
DEADLINE = 2.4
CHECKOUT_DEADLINE = 2.0
_SESSION = """
SET statement_timeout = '5s'; SET lock_timeout = '2s'; SET idle_in_transaction_session_timeout = '10s';
SET jit = off; SET timezone = 'UTC'
"""
# A connection that was at work so many seconds ago needs no look at whether it is still there.
_FRESH = 0.01
# Connections of a process: as many as it can keep busy, and one for deliveries. Each takes 4 MB in Postgres.
SIZE = 9
# With so many who have waited in vain, or still do, Postgres is taken for hung; a single one may have asked
# for something slow.
_HUNG_AFTER = 2
# Seconds after which one request is let through to it again.
PAUSE = 1.0


class Connection(PlainConnection):
    """A connection whose statements end after a few seconds."""

    deadline: float | None = DEADLINE

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        # The statements that this connection knows by name.
        self.prepared: set[str] = set()
        self.used_at = time.monotonic()


class _Patient(PlainConnection):
    deadline = None


def _wait(connection: PlainConnection) -> None:
    """Wait for Postgres; psycopg2 calls this for connecting and for each statement."""
    seconds = getattr(connection, "deadline", None)
    deadline = None if seconds is None else time.monotonic() + seconds
    while (state := connection.poll()) != POLL_OK:
        poller = select.poll()
        poller.register(
            connection.fileno(),
            select.POLLIN if state == POLL_READ else select.POLLOUT if state == POLL_WRITE else 0,
        )
        left = None if deadline is None else max(0.0, deadline - time.monotonic()) * 1000
        if not poller.poll(left):
            raise UnansweredError(f"Postgres has not answered within {seconds} s")


psycopg2.extensions.set_wait_callback(_wait)


def connect(url: str) -> Connection:
    """Open a connection in which a statement ends after a few seconds."""
    connection: Connection = connect_to_any(url, Connection, DEADLINE)
    connection.autocommit = True
    with connection.cursor() as cursor:
        cursor.execute(_SESSION)
    return connection


def connect_patiently(url: str) -> PlainConnection:
    """Open a connection for maintenance, in which a statement takes as long as it takes."""
    return connect_to_any(url, _Patient, None)


class Pool:
    """A stack of at most `size` connections, made when needed after a fork.

    It breaks the circuit to a Postgres that hangs: were each to find that out for itself, those who wait for
    a thread or a connection behind others would wait for it two and three times over.
    """

    def __init__(self, url: str, size: int) -> None:
        self._url = url
        # The last one returned is the first one lent: its backend's caches are warm.
        self._idle: list[Connection] = []
        # One for each connection that may be lent. Python's stack that waits, LifoQueue, is not written in C
        # as this is.
        self._permits: queue.SimpleQueue[None] = queue.SimpleQueue()
        for _ in range(size):
            self._permits.put(None)
        self._size = size
        # Who has waited in vain since the last answer, and when that was; and when to ask again.
        self._unanswered = 0
        self._answered_at = 0.0
        self._ask_at = 0.0

    @contextmanager
    def connection(self) -> Iterator[Connection]:
        """Lend a connection. Raises `psycopg2.OperationalError` when none is free in time, or Postgres is
        away.
        """
        try:
            self._permits.get(timeout=CHECKOUT_DEADLINE)
        except queue.Empty:
            raise psycopg2.OperationalError("all connections to Postgres are in use") from None
        connection = usable = None
        try:
            self._refuse_while_hung()
            connection = self._idle_one()
            if connection is None or _is_dead(connection):
                connection = connect(self._url)
            yield connection
            usable = connection
            self._note_answer()
        except BaseException as error:
            if isinstance(error, UnansweredError):
                self._note_unanswered()
            elif getattr(error, "pgcode", None):
                self._note_answer()
            # Also one that Postgres has turned read-only or that has been left in the middle of an answer is
            # closed.
            if not isinstance(
                error, psycopg2.OperationalError | psycopg2.InterfaceError | psycopg2.InternalError
            ):
                usable = connection
            raise
        finally:
            if (
                usable is not None
                and not usable.closed
                and usable.get_transaction_status() == TRANSACTION_STATUS_IDLE
            ):
                usable.used_at = time.monotonic()
                self._idle.append(usable)
            elif connection is not None:
                connection.close()
            self._permits.put(None)

    def close(self) -> None:
        """Close the connections that are not lent."""
        while (connection := self._idle_one()) is not None:
            connection.close()

    def _refuse_while_hung(self) -> None:
        if self._unanswered < _HUNG_AFTER:
            return
        if time.monotonic() < self._ask_at:
            raise psycopg2.OperationalError("Postgres does not answer")
        self._ask_at = time.monotonic() + PAUSE

    def _note_answer(self) -> None:
        self._unanswered = 0
        self._answered_at = time.monotonic()

    def _note_unanswered(self) -> None:
        # It has answered others just now: then it is the statement that is slow.
        if time.monotonic() - self._answered_at < DEADLINE / 2:
            return
        # This one, and those that wait beside it: the next request comes before they have done so for as
        # long.
        self._unanswered += self._size - self._permits.qsize()
        self._ask_at = time.monotonic() + PAUSE
        if self._unanswered >= _HUNG_AFTER:
            # They may lead to a machine that is gone; each would cost somebody a time-out.
            self.close()

    def _idle_one(self) -> Connection | None:
        try:
            return self._idle.pop()
        # None is idle: one is to be made.
        except IndexError:
            return None


def _is_dead(connection: Connection) -> bool:
    """Whether a connection at rest is closed: one that has something to read has been told so, or is at its
    end.
    """
    if connection.closed:
        return True
    if time.monotonic() - connection.used_at < _FRESH:
        return False
    poller = select.poll()
    poller.register(connection.fileno(), select.POLLIN)
    if poller.poll(0):
        connection.close()
        return True
    return False
