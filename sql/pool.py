"""Connections to Postgres, each with a deadline, and the pool that lends them.

psycopg2's own pool closes what is returned above its minimum, connects all of the minimum at once, and raises
at once when it is exhausted.
"""

import math
import re
import select
import sys
import threading
import time
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any

import psycopg2
from psycopg2 import BINARY, STRING
from psycopg2.extensions import (
    BOOLEAN,
    FLOAT,
    INTEGER,
    ISOLATION_LEVEL_READ_COMMITTED,
    JSONB,
    LONGINTEGER,
    POLL_OK,
    POLL_READ,
    PYDATETIMETZ,
    STRINGARRAY,
    TRANSACTION_STATUS_IDLE,
    make_dsn,
    new_type,
    parse_dsn,
    register_type,
)
from psycopg2.extensions import connection as PlainConnection

LEAST_VERSION = 14
# Seconds for which a connection is lent, including the wait for it. A little more than lock_timeout below, so
# that Postgres can still report the lock. It matters when Postgres is frozen or the network silent.
DEADLINE = 2.4
CHECKOUT_DEADLINE = 2.0
# Seconds for each of several hosts, without a deadline.
_PATIENCE = 10.0
# These override the role's settings. PgBouncer passes both on.
_PARAMETERS: dict[str, Any] = {"application_name": "latchkey", "client_encoding": "UTF8"}
# Load balancers and firewalls forget a silent connection, some after a minute, without a word. By default,
# Linux probes after two hours. The URL may say otherwise.
_KEEPALIVES = {"keepalives_idle": "30", "keepalives_interval": "10", "keepalives_count": "3"}
# With this check, Postgres ends the statement of a client that gave up its connection.
_SESSION = """
SET client_connection_check_interval = '1s'; SET jit = off; SET timezone = 'UTC';
SET default_transaction_isolation = 'read committed'
"""
_TIMEOUTS = """
SET statement_timeout = '5s'; SET lock_timeout = '2s'; SET idle_in_transaction_session_timeout = '10s'
"""
# Lifts the role's limits for long work. Postgres before 17 has no transaction_timeout.
_NO_TIMEOUTS = """
SELECT set_config(name, '0', {is_local}) FROM pg_settings
 WHERE name IN ('statement_timeout', 'lock_timeout', 'transaction_timeout',
                'idle_in_transaction_session_timeout', 'idle_session_timeout')
"""
NO_TIMEOUTS = _NO_TIMEOUTS.format(is_local="false")
NO_TIMEOUTS_OF_TRANSACTION = _NO_TIMEOUTS.format(is_local="true")
# PgBouncer may run a statement in a session without the setting.
BEGIN = "BEGIN ISOLATION LEVEL READ COMMITTED; SET LOCAL latchkey.notifies_after_commit = on"
# Before a statement in the same string, or after BEGIN: the commit does not wait for the disk.
ASYNCHRONOUS = "SET LOCAL synchronous_commit = off"
# The end of the INFO that `notify_of_message` sends such a transaction.
MESSAGE_WRITTEN = "a message was written\n"
# Before a single statement in the same string, which makes both one transaction.
READ_COMMITTED = "SET TRANSACTION ISOLATION LEVEL READ COMMITTED"
# Adapters for the types that statements return. Other libraries in the process may register theirs for all
# connections, as Django does for uuid.
_CASTERS = (
    *(BINARY, BOOLEAN, FLOAT, INTEGER, JSONB, LONGINTEGER, PYDATETIMETZ, STRING, STRINGARRAY),
    new_type((2950,), "UUID", lambda text, _cursor: text),
)
# For other machines, the settings add sslmode=verify-full.
_UNVERIFIED = """
Name the host as its certificate does, and add sslrootcert=FILE to the URL, with the authority that signed it
Or add sslmode=prefer, which verifies nothing
"""
# Connections of a process; a worker's last one is for GET /health. Each takes 4 MB in Postgres.
SIZE = 6
# The number of connections that a pool opens at once, and the seconds of waiting after which it opens
# another. It opens the next one after twice the time.
_AT_ONCE = 3
PATIENCE = 0.1
_MINUTE = 60.0
# Seconds until a pool tries again after Postgres has refused a connection.
_PAUSE = 1.0
# Limits of all clients, of a role, of a database. psycopg2 does not expose the code of a refusal, 53300.
_TOO_MANY = re.compile("too many|connection slots")
# Polls a connection without waiting. gevent's `poll` would run other requests meanwhile.
_gevent = sys.modules.get("gevent.monkey")
_poll = _gevent.get_original("select", "poll") if _gevent else select.poll
# The host to try first, by URL.
_last_hosts: dict[str, str] = {}


class NotInTime(psycopg2.OperationalError):
    """Postgres, or the pool, has not responded in time."""


def reason(error: psycopg2.Error) -> str:
    """Return the message of an error, which may have several lines, as sentences on one line."""
    if isinstance(error, psycopg2.InterfaceError) and isinstance(error.__context__, psycopg2.Error):
        error = error.__context__  # a rollback then found the connection closed
    lines = [" ".join(line.split()) for line in str(error).splitlines() if line.strip()]
    without_period = re.compile(r"[.?:]$|: (GRANT|CREATE) .+$")  # a statement to paste
    text = " ".join(line if without_period.search(line) else f"{line}." for line in lines)
    if "statement pooling mode" in text:
        return "PgBouncer pools statements. Set its pool_mode = transaction, and AUTH_DB_PREPARE=false."
    return text


def unusable(setting: str, error: psycopg2.Error) -> str:
    """Return the line for the operator: the problem with the database of a setting, and the remedy."""
    text = reason(error)
    if isinstance(error, psycopg2.ProgrammingError) and not error.pgcode:  # `schema` has the remedy
        return f"{setting}: The schema cannot be applied: {text}"
    remedy = "To find the cause, run: latchkey doctor"
    if type(error) in (psycopg2.OperationalError, NotInTime):
        remedy = f"Start that Postgres, or correct {setting}."
    if "sslrootcert=" in text or "pool_mode" in text:
        return f"{setting}: {text}"
    return f"{setting}: The database cannot be used: {text} {remedy}"


class Connection(PlainConnection):
    """A connection that waits until `deadline`, a time of `time.monotonic`, or without limit."""

    def __init__(self, dsn: str, deadline: float | None) -> None:
        self.deadline = deadline
        # The statements prepared on this connection.
        self.prepared: set[str] = set()
        super().__init__(dsn)
        for caster in _CASTERS:
            register_type(caster, self)


def _wait(connection: PlainConnection) -> None:
    """Wait for Postgres; psycopg2 calls this for connecting and for each statement."""
    deadline = getattr(connection, "deadline", None)
    while (state := connection.poll()) != POLL_OK:
        poller = select.poll()
        poller.register(connection.fileno(), select.POLLIN if state == POLL_READ else select.POLLOUT)
        if not poller.poll(deadline and max(0.0, deadline - time.monotonic()) * 1000):
            raise NotInTime("Postgres has not responded in time")


psycopg2.extensions.set_wait_callback(_wait)


def connect(url: str, deadline: float | None = None, *, has_timeouts: bool = True) -> Connection:
    """Open a connection, with timeouts for short statements by default, whatever the role's settings say."""
    connection = connect_patiently(url, deadline)
    connection.autocommit = True
    with connection.cursor() as cursor:
        cursor.execute(f"{_SESSION}; {_TIMEOUTS if has_timeouts else NO_TIMEOUTS}")
    return connection


def connect_patiently(url: str, deadline: float | None = None) -> Connection:
    """Open a connection with the role's time limits. Its transactions are READ COMMITTED, whatever the role's
    settings say. Each of several hosts gets a share of the time: libpq would spend all of it on one that
    hangs, and not reach the one that has taken over.
    """
    hosts = sorted(_hosts(url), key=lambda host: host != _last_hosts.get(url))
    refusals: list[str] = []
    ends_at = deadline
    if deadline is None and len(hosts) > 1:
        ends_at = time.monotonic() + _PATIENCE * len(hosts)
    while True:
        host = hosts.pop(0)
        host_deadline = ends_at and time.monotonic() + (ends_at - time.monotonic()) / (len(hosts) + 1)
        factory = partial(Connection, deadline=host_deadline)
        try:
            parameters = _KEEPALIVES | parse_dsn(host) | _PARAMETERS
            connection = psycopg2.connect(connection_factory=factory, **parameters)
        except psycopg2.OperationalError as error:
            refusals.append(_refusal(host, error))
            if not hosts:
                raise _with_all_refusals(error, host, refusals) from None
        else:
            if (version := connection.server_version // 10_000) < LEAST_VERSION:
                connection.close()
                raise psycopg2.OperationalError(
                    f"it is Postgres {version}, but must be Postgres {LEAST_VERSION} or later"
                )
            connection.deadline = deadline
            # psycopg2's BEGIN sets it; in autocommit, `_SESSION` does.
            connection.isolation_level = ISOLATION_LEVEL_READ_COMMITTED
            _last_hosts[url] = host
            return connection


def _refusal(dsn: str, error: psycopg2.OperationalError) -> str:
    """Return the reason with its host and port, which libpq omits for a non-blocking connect."""
    parts, reason = parse_dsn(dsn), str(error).rstrip()
    host = parts.get("hostaddr") or parts.get("host", "localhost")
    if host in reason:
        return reason
    return f'connection to server at "{host}", port {parts.get("port", 5432)} failed: {reason}'


def _with_all_refusals(
    error: psycopg2.OperationalError, dsn: str, refusals: list[str]
) -> psycopg2.OperationalError:
    """Return the last error with the refusals of all hosts, as a pool must know that the primary has too many
    connections, and with the remedy if the servers cannot be verified."""
    reason = "\n".join(refusals)
    if parse_dsn(dsn).get("sslmode") == "verify-full" and ("SSL" in reason or "certificate" in reason):
        reason += _UNVERIFIED
    return type(error)(reason)


def _hosts(url: str) -> list[str]:
    parts = parse_dsn(url)
    lists = {name: parts[name].split(",") for name in ("host", "hostaddr", "port") if name in parts}
    count = max(map(len, lists.values()), default=1)
    # A single port is that of all hosts.
    return [
        make_dsn(url, **{name: values[i % len(values)] for name, values in lists.items()})
        for i in range(count)
    ]


class _Turn:
    """A request in the queue for a connection. Releasing the lock ends its wait."""

    def __init__(self) -> None:
        self.connection: Connection | None = None
        self.lock = threading.Lock()
        self.lock.acquire()

    def comes_within(self, seconds: float) -> bool:
        return self.lock.acquire(timeout=max(0.0, seconds))


class Pool:
    """Lends at most `size` connections, the last returned first, because its backend's caches are warm.

    Waiting requests get them first in, first out. With `has_timeouts=False`, statements have no time limit.
    """

    def __init__(self, url: str, size: int, has_timeouts: bool = True, gives_up_at: float = math.inf) -> None:
        # Smaller after Postgres has refused a connection.
        self.size = size
        # The number of requests that gave up waiting for a connection.
        self.timeouts = 0
        self._full_size = size
        self._grows_at = 0.0
        self._url = url
        self._has_timeouts = has_timeouts
        self._gives_up_at = gives_up_at
        self._lock = threading.Lock()
        # The connections that are open or being opened.
        self._open = 0
        self._idle: list[Connection] = []
        # The number of idle connections that no request has needed since the last call of `close_unneeded`.
        self._unneeded = 0
        self._waiting: deque[_Turn] = deque()

    @contextmanager
    def connection(self) -> Iterator[Connection]:
        """Lend a connection.

        Raises `OperationalError` if none is free in time, or Postgres is unavailable.
        """
        began_at = time.monotonic()
        deadline = min(began_at + DEADLINE, self._gives_up_at) if self._has_timeouts else None
        connection = self._obtain(began_at + CHECKOUT_DEADLINE, deadline)
        try:
            connection.deadline = deadline
            yield connection
        except (psycopg2.OperationalError, psycopg2.InterfaceError, psycopg2.InternalError):
            # Postgres may have become read-only, or be in the middle of a response.
            connection.close()
            raise
        finally:
            if connection.get_transaction_status() != TRANSACTION_STATUS_IDLE:
                connection.close()
            self._give(connection)

    @property
    def lent(self) -> int:
        return self._open - len(self._idle)

    def close(self, most: int | None = None) -> None:
        """Close the idle connections, or at most `most` of them, those returned first."""
        with self._lock:
            for connection in self._idle[:most]:
                connection.close()
                self._open -= 1
            del self._idle[:most]

    def watch(self) -> None:
        """Call `close_unneeded` every minute, in a thread or greenlet."""
        threading.Thread(target=self._watch, name="pool", daemon=True).start()

    def close_unneeded(self) -> None:
        """Close the connections that no request has needed since the last call, except one."""
        self.close(min(self._unneeded, self._open - 1))
        self._unneeded = len(self._idle)

    def _watch(self) -> None:
        while True:
            time.sleep(_MINUTE)
            self.close_unneeded()

    def _obtain(self, until: float, deadline: float | None) -> Connection:
        """Return a connection of the pool, or a new one."""
        connection = turn = None
        with self._lock:
            if self._idle:
                self._unneeded = min(self._unneeded, len(self._idle) - 1)
                connection = self._idle.pop()
            elif (
                self._open < min(_AT_ONCE, self.size)
                and self.size == self._full_size
                # A pool of one connection cannot shrink: after a refusal, wait before the next attempt.
                and time.monotonic() > self._grows_at
            ):
                self._open += 1
            else:
                turn = _Turn()
                self._waiting.append(turn)
        if turn:
            connection = self._wait(turn, until)
        try:
            if connection:
                # A connection that Postgres has closed is readable.
                poller = _poll()
                poller.register(connection.fileno(), select.POLLIN)
                if not poller.poll(0):
                    return connection
                connection.close()
            return connect(self._url, deadline, has_timeouts=self._has_timeouts)
        except BaseException as error:  # also the end of a greenlet
            if not self._gives_one_up(error):
                self._give(None)
                raise
        return self._obtain(until, deadline)

    def _wait(self, turn: _Turn, until: float) -> Connection | None:
        """Return a connection, or None if the caller may open one."""
        patience = PATIENCE
        try:
            while not turn.comes_within(min(patience, until - time.monotonic())):
                patience *= 2
                with self._lock:
                    if turn not in self._waiting:
                        continue
                    if time.monotonic() >= until:
                        self.timeouts += 1
                        raise NotInTime("all connections to Postgres are in use")
                    if self._may_open():
                        self._waiting.remove(turn)
                        self._open += 1
                        return None
            return turn.connection
        except BaseException:
            with self._lock:
                has_come = turn not in self._waiting
                if not has_come:
                    self._waiting.remove(turn)
            if has_come:
                self._give(turn.connection)
            raise

    def _may_open(self) -> bool:
        if self._open == self.size < self._full_size and time.monotonic() > self._grows_at:
            self.size += 1
            self._grows_at = time.monotonic() + _PAUSE
        return self._open < self.size

    def _gives_one_up(self, error: BaseException) -> bool:
        """Shrink the pool if Postgres has too many connections, and return whether it has.

        The caller then waits for another connection. Other processes, such as workers, get the one given up.
        """
        if not isinstance(error, psycopg2.OperationalError) or not _TOO_MANY.search(str(error)):
            return False
        with self._lock:
            self._open -= 1
            self.size = max(1, self._open - 1)
            self._grows_at = time.monotonic() + _PAUSE
        return True

    def _give(self, connection: Connection | None) -> None:
        """Give a connection, or permission to open one, to the request that has waited longest."""
        with self._lock:
            if connection and (connection.closed or self._open > self.size):
                connection.close()
                connection = None
            if self._waiting and self._open <= self.size:
                turn = self._waiting.popleft()
                turn.connection = connection
                turn.lock.release()
            elif connection:
                self._idle.append(connection)
            else:
                self._open -= 1
