"""Connections while no thread serves them: one that sends a request little by little, one that is to rest, and one that ends."""

import contextlib
import itertools
import selectors
import socket
import time
from collections import OrderedDict, deque
from collections.abc import Callable, Iterator
from functools import partial

from gunicorn.http.parser import RequestParser
from gunicorn.http.unreader import Unreader
from gunicorn.workers.gthread import TConn

from auth import raw_http
from auth.client_sockets import ClientSocket

# Seconds for which a client that was asked to come back later is not listened to: one that asks again at once, and many do,
# would have the time of those who are served spent on refusing it. The answer is not kept waiting, and no thread waits.
_REST = 1
# What was refused together must not come back together; but who comes back when `Retry-After` has said so waits for nobody.
_BETWEEN = 0.02
_LONGEST_REST = 2
# Seconds in which a client may read the last answer, before its connection is closed.
_FAREWELL = 2
# Bytes of unfinished requests that are held at most: ten thousand clients must not be able to have a machine's memory.
MOST_HELD = 32 * 1024 * 1024


class Line:
    """Connections in the order in which their time is up, in the place of gunicorn's deques, which look for one that leaves among all others."""

    def __init__(self) -> None:
        self._conns: OrderedDict[TConn, None] = OrderedDict()

    def __len__(self) -> int:
        return len(self._conns)

    def __iter__(self) -> Iterator[TConn]:
        return iter(self._conns)

    def __getitem__(self, place: int) -> TConn:
        return next(itertools.islice(self._conns, place, None))

    def append(self, conn: TConn) -> None:
        """Add a connection, whose time is up after that of all others."""
        self._conns[conn] = None

    def popleft(self) -> TConn:
        """Take the first one."""
        return self._conns.popitem(last=False)[0]

    def remove(self, conn: TConn) -> None:
        """Take one out."""
        del self._conns[conn]


class Connection(TConn):
    """A connection. The poller watches it all the time, but while it sends what is not asked for."""

    sock: ClientSocket
    # Of HTTP/1: none but its is made.
    parser: RequestParser
    is_watched = False
    rests = False
    # Whether its next request may have waited for the end of a rest.
    has_rested = False
    # Whether the request that is served, or waits for that, has a password hashed.
    is_to_hash = False
    # Those that wait as it does: for their next request, or for the rest of one; None: it is served.
    queue: Line | None = None

    @property
    def unreader(self) -> Unreader:
        """What has come and is not parsed yet."""
        return self.parser.unreader

    def forget_request(self) -> None:
        """Forget the request that has been answered: its headers would be held until the next one comes."""
        self.parser.mesg = None


class Unfinished:
    """What has come of requests that are not whole."""

    def __init__(self) -> None:
        self._data: dict[Connection, bytes] = {}
        self._held = 0

    def __contains__(self, conn: Connection) -> bool:
        return conn in self._data

    def add(self, conn: Connection, received: bytes) -> bytes | None:
        """Return all that has come of a request once a thread can go on with it without waiting, or must: at an end, where nothing is received."""
        data = self._forget(conn) + received
        if received and not raw_http.is_for_a_thread(data):
            if self._held + len(data) <= MOST_HELD:
                self._data[conn] = data
                self._held += len(data)
                return None
            # A thread will find that it ends here.
            with contextlib.suppress(OSError):
                conn.sock.shutdown(socket.SHUT_RD)
        return data

    def forget_closed(self) -> None:
        """Forget what has come over connections that are closed by now."""
        for conn in [conn for conn in self._data if conn.sock.fileno() < 0]:
            self._forget(conn)

    def _forget(self, conn: Connection) -> bytes:
        data = self._data.pop(conn, b"")
        self._held -= len(data)
        return data


class Resting:
    """Connections that are not listened to for a while, in the order in which they will be again: one after the other."""

    def __init__(self) -> None:
        self._until: deque[tuple[float, Connection]] = deque()

    def add(self, conn: Connection) -> None:
        """Let a connection rest."""
        now, last = time.monotonic(), self._until[-1][0] if self._until else 0.0
        self._until.append((min(max(now + _REST, last + _BETWEEN), now + _LONGEST_REST), conn))
        conn.rests = True

    def take_rested(self, now: float) -> Iterator[Connection]:
        """Yield those that have rested until now, but for those that have left since (`rests`)."""
        while self._until and self._until[0][0] <= now:
            conn = self._until.popleft()[1]
            if conn.rests:
                conn.rests, conn.has_rested = False, True
                yield conn


class Leaving:
    """Connections that end: told so, and closed when the client has read that, or has had the time to (RFC 9112, section 9.6).

    gunicorn waits for the client here, and meanwhile for no other.
    """

    def __init__(self, poller: selectors.BaseSelector, closed: Callable[[], None]) -> None:
        self._poller = poller
        # Called for each that is closed: until then it has a descriptor, and a client that may not have read its answer.
        self._closed = closed
        # In the order in which they were told.
        self._until: dict[Connection, float] = {}

    def add(self, conn: Connection) -> None:
        """End a connection, which nobody watches."""
        try:
            conn.sock.shutdown(socket.SHUT_WR)
            self._poller.register(conn.sock, selectors.EVENT_READ, partial(self._drain, conn))
        # It has gone already.
        except OSError:
            self._close(conn)
            return
        self._until[conn] = time.monotonic() + _FAREWELL

    def close_overdue(self, now: float) -> None:
        """Close those whose clients have had their time."""
        for conn in [conn for conn, until in self._until.items() if until < now]:
            self._end(conn)

    def _drain(self, conn: Connection, client: socket.socket) -> None:
        try:
            ends = not client.recv(raw_http.COLLECTED, socket.MSG_DONTWAIT)
        except OSError:
            ends = True
        if ends:
            self._end(conn)

    def _end(self, conn: Connection) -> None:
        del self._until[conn]
        self._poller.unregister(conn.sock)
        self._close(conn)

    def _close(self, conn: Connection) -> None:
        conn.close()
        self._closed()
