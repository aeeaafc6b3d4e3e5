"""gunicorn's threaded worker, made safe against crowds and slow requests, and with errors in this service's envelope.

Which requests have a thread, and which are turned away; what becomes of connections meanwhile is the base class's.
"""

import math
import socket
import time
from collections import deque
from collections.abc import Callable
from functools import partial
from typing import Any

import structlog
from gunicorn.http.errors import LimitRequestHeaders, LimitRequestLine, ParseException

from auth import raw_http
from auth.client_sockets import ClientSocket
from auth.connection_worker import REQUEST_DEADLINE, ConnectionWorker
from auth.connections import Connection
from auth.tally import Tally, tell_all
from auth.threads import Threads

log = structlog.get_logger()
_turned_away, _turned_away_to_hash = Tally("turned_away"), Tally("turned_away_to_hash")

# How many requests wait for a thread; what comes beyond them would be answered too late to be of use.
QUEUE = 64


class Worker(ConnectionWorker):
    """A worker whose threads are given to requests that have begun, and for so long only."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._begun: dict[Connection, float] = {}
        # When nobody hears of an answer any more.
        self._over_at = math.inf
        # With whether it stays open.
        self._served: deque[tuple[Connection, bool]] = deque()
        # Whether a request has a password hashed, by what it begins with; and how many of these find a place.
        self.is_to_hash: Callable[[bytes], object] = lambda _: False
        self.places_to_hash = 0
        # Behind a proxy a connection is that of many clients: one of them must not make the others wait.
        self.faces_clients = True

    def run(self) -> None:
        """Serve until told to end."""
        self._threads = Threads(self.cfg.threads)
        try:
            super().run()
        finally:
            self._threads.shutdown()
            # Their time has passed, and nobody will look after them any more.
            self._over_at = time.monotonic()
            for conn in self._begun.copy():
                _shut_down(conn.sock)

    def enqueue(self, conn: Connection, data: bytes) -> None:
        """Have a thread serve a request, or turn it away at once where more of them wait than will be served soon.

        Its time begins here: what waits for a thread behind slow ones must not wait for each of them.
        """
        has_rested, conn.has_rested = conn.has_rested, False
        # A crowd that asked again at once, and then left, is not to be served when it has rested.
        if has_rested and conn.sock.has_ended():
            self._finish(conn, False)
            return
        if raw_http.is_endless(data):
            error = LimitRequestHeaders("longer than is collected") if b"\r\n" in data else LimitRequestLine(len(data), self.cfg.limit_request_line)
            self.handle_error(None, conn.sock, conn.client, error)
            self._finish(conn, False)
            return
        # One that comes slowly must not have a place.
        conn.is_to_hash = bool(self.is_to_hash(data)) and raw_http.is_complete(data)
        if self._is_full(conn):
            self._turn_away(conn, data)
            return
        conn.unreader.unread(data)
        self._begun[conn] = time.monotonic()
        self._threads.run(partial(self._serve, conn), len(self._begun))

    def _is_full(self, conn: Connection) -> bool:
        """Whether there is no place for a request.

        Those that would find none to hash would be told by the application too (`TooManyWaiting`), but a crowd of them a tenth of a second later,
        and they would have the places of others until then.
        """
        if conn.is_to_hash and sum(other.is_to_hash for other in self._begun.copy()) >= self.places_to_hash:
            return True
        return len(self._begun) >= self.cfg.threads + QUEUE

    def _serve(self, conn: Connection) -> None:
        stays = False
        try:
            # Once it is cut off, nobody would hear of what it has done.
            if time.monotonic() <= min(self._begun[conn] + REQUEST_DEADLINE, self._over_at):
                stays = bool(super().handle(conn))
        finally:
            self._begun.pop(conn, None)
            self._give_back(conn, stays)

    def handle_request(self, req: Any, conn: Any) -> bool:
        """Have the application answer, and send the answer; return whether the connection stays."""
        stays = super().handle_request(req, conn)
        # Its place is free before its client hears of it, who may ask again at once.
        conn.is_to_hash = False
        conn.sock.flush()
        return stays

    def _keepalive_after(self, conn: Connection, keepalive: bool) -> bool:
        try:
            return bool(super()._keepalive_after(conn, keepalive))  # type: ignore[misc]  # the stubs don't know it
        except ParseException:
            # It has had its answer: a second one would be taken for that to another request.
            return False

    def _give_back(self, conn: Connection, stays: bool) -> None:
        """Leave a connection to the main thread; the thread of a request calls this, as the last thing.

        The main thread looks for such connections each time before it waits. It is woken only where there is something to do that nothing
        else wakes it for: most connections next have a request to read.
        """
        self._served.append((conn, stays))
        # The main thread ceases to watch a connection before it looks for it here, so one of the two sees what the other has done.
        if not stays or not conn.is_watched or conn.unreader.buf.getvalue() or conn.sock.is_refused:
            self.method_queue.defer(self.take_back)

    def take_back(self) -> None:
        """Wait for the next request of connections that have been served, or end them."""
        while self._served:
            self._finish(*self._served.popleft())

    def _turn_away(self, conn: Connection, data: bytes) -> None:
        (_turned_away_to_hash if conn.is_to_hash else _turned_away).count()
        stays = raw_http.may_stay(data)
        self._answer(conn.sock, 503, "Retry-After: 2", "Connection: keep-alive" if stays else "Connection: close")
        self.refused(conn.sock)
        self._finish(conn, stays)

    def refused(self, client: ClientSocket) -> None:
        """Take note that the answer which is on its way to a client asks it to come back later."""
        client.is_refused = self.faces_clients

    def _finish(self, conn: Connection, stays: bool) -> None:
        """Wait for the connection's next request: at once, or after a rest. Or end it."""
        conn.forget_request()
        was_refused, conn.sock.is_refused = conn.sock.is_refused, False
        # Who is not watched any more has sent something while it was served, or has gone.
        if not stays or (was_refused and not conn.is_watched and conn.sock.has_ended()):
            self.leave(conn)
        elif was_refused:
            self.rest(conn)
        else:
            self.await_next(conn)

    def look_after(self, now: float) -> None:
        """Log what tallies have not told, and end requests that take too long."""
        tell_all()
        for conn, began_at in self._begun.copy().items():
            if now - began_at > REQUEST_DEADLINE:
                _shut_down(conn.sock)

    def handle_error(self, req: Any, client: socket.socket, addr: Any, exc: BaseException) -> None:
        """Answer what has not become a request with the error envelope. What was sent, which may be a secret, is not logged."""
        status = 400 if isinstance(exc, ParseException) else 500
        if isinstance(exc, LimitRequestLine | LimitRequestHeaders):
            status = 414 if isinstance(exc, LimitRequestLine) else 431
        request_id = self._answer(client, status, "Connection: close")
        log.warning("invalid_request", status=status, error=type(exc).__name__, ip=addr[0] if addr else None, request_id=request_id)

    def _answer(self, client: socket.socket, status: int, *headers: str) -> str:
        """Answer with the error envelope, if the client takes it at once, or else end; return the request's id."""
        answer, request_id = raw_http.error_answer(status, *headers)
        try:
            is_sent = client.send(answer, socket.MSG_DONTWAIT) == len(answer)
        except OSError as error:
            log.debug("error_not_sent", reason=str(error))
            is_sent = False
        if not is_sent:
            # What came after a part of an answer would be taken for the rest of it.
            _shut_down(client)
        return request_id


def _shut_down(client: socket.socket) -> None:
    """Have a thread that reads from a client, or writes to it, find that it is at an end, and give up; the client too."""
    try:
        client.shutdown(socket.SHUT_RDWR)
    except OSError as error:
        log.debug("shutdown_failed", reason=str(error))
