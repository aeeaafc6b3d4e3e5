"""gunicorn's threaded worker, made safe against slow clients, and with errors in this service's envelope.

gunicorn gives a thread to a request as soon as its first byte is there, and its own time-outs end neither half-sent heads nor
half-sent bodies: a few such connections would hold all threads of a worker for as long as they like. Here what comes slowly is
collected first, which takes no thread.
"""

import contextlib
import math
import select
import selectors
import socket
import time
from collections import deque
from collections.abc import Callable
from functools import partial
from typing import Any

import structlog
from gunicorn.http.errors import LimitRequestHeaders, LimitRequestLine, ParseException
from gunicorn.workers.gthread import ThreadWorker

from auth import raw_http, scheduling
from auth.client_sockets import ClientSocket
from auth.connections import Connection, Leaving, Resting, Unfinished
from auth.shares import Share
from auth.threads import Threads

log = structlog.get_logger()

# Seconds that a request may take to arrive (for the first one of a connection, from when that was made), and then to be answered.
REQUEST_DEADLINE = 10
# Seconds for which a process that has more connections than others leaves them the next one: enough for one that sleeps to wake up.
_DEFERENCE = 0.0002
# How many requests wait for a thread; what comes beyond them would be answered too late to be of use.
QUEUE = 64
# Seconds for which a process that ends answers further requests of connections that it has, as gunicorn does.
_LINGER = 2


class Worker(ThreadWorker):
    """A worker whose threads are given to requests that have begun, and for so long only."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._begun: dict[Connection, float] = {}
        # With whether it stays open.
        self._served: deque[tuple[Connection, bool]] = deque()
        self._unfinished = Unfinished()
        self._refused: set[socket.socket] = set()
        self._resting = Resting()
        self._looked_at = 0.0
        self._turned_away = self._turned_away_to_hash = 0
        # Whether a request has a password hashed, by what it begins with; and how many of these find a place.
        self.is_to_hash: Callable[[bytes], object] = lambda _: False
        self.places_to_hash = 0
        # Behind a proxy a connection is that of many clients: one of them must not make the others wait.
        self.faces_clients = True
        # The one that this process keeps to.
        self.core: int | None = None
        self.share = Share()

    def init_process(self) -> None:
        """Begin, on the core that the process keeps to; for good."""
        if self.core is not None:
            scheduling.keep_to(self.core)
        super().init_process()

    def run(self) -> None:
        """Serve until told to end."""
        self._threads = Threads(self.cfg.threads)
        self._leaving = Leaving(self.poller)
        try:
            super().run()
        finally:
            self._threads.shutdown()

    def accept(self, listener: socket.socket) -> None:
        """Take a connection, and wait for its first request with the poller: gunicorn would let a thread wait."""
        self._accept(listener)

    def _accept(self, listener: socket.socket) -> bool:
        """Take a connection, if there is one to be had; return whether there was."""
        self.share.tell(self.nr_conns)
        if self.alive and self.share.is_large():
            # It may still be there then: others may be busy, or stuck.
            time.sleep(_DEFERENCE)
        try:
            client, address = listener.accept()
        except OSError as error:
            # The client has gone again, another worker was faster, or the system is short of something: then later.
            log.debug("accept_failed", reason=str(error))
            return False
        conn = Connection(self.cfg, ClientSocket(client), address, listener.getsockname())
        self.nr_conns += 1
        self._watch(conn)
        self._collect(conn)
        return True

    def _watch(self, conn: Connection) -> None:
        # Where an answer fails in the middle, its thread closes the connection; its number may be given to this one before the poller is told.
        with contextlib.suppress(KeyError):
            self.poller.unregister(conn.sock.fileno())
        self.poller.register(conn.sock, selectors.EVENT_READ, partial(self._on_readable, conn))
        conn.is_watched = True

    def _unwatch(self, conn: Connection) -> None:
        if conn.is_watched:
            conn.is_watched = False
            # Closed like that, it has no number any more.
            with contextlib.suppress(KeyError, ValueError):
                self.poller.unregister(conn.sock)

    def _on_readable(self, conn: Connection, _client: socket.socket) -> None:
        """Collect what has come of a request; once it is whole, have it served."""
        if conn.queue is None:
            self._take_back()
        queue = conn.queue
        if queue is None:
            # It sends more, or ends, while it is served. That is looked at later; the poller would tell of it again and again.
            self._unwatch(conn)
            if conn.rests and conn.has_ended():
                conn.rests = False
                self._leave(conn)
        elif self._is_collected(conn):
            queue.remove(conn)
            conn.queue = None
            self._enqueue(conn)
        elif queue is self.keepalived_conns:
            queue.remove(conn)
            self._collect(conn)

    def _collect(self, conn: Connection) -> None:
        """Wait for the rest of a request that has begun, as the first one does with its connection."""
        conn.timeout = time.monotonic() + REQUEST_DEADLINE
        self.pending_conns.append(conn)
        conn.queue = self.pending_conns

    def _is_collected(self, conn: Connection) -> bool:
        """Read what there is; return whether a thread can go on with it without waiting, or must (an end, an error, a long body)."""
        try:
            received = conn.sock.recv(raw_http.COLLECTED, socket.MSG_DONTWAIT)
        except BlockingIOError:
            return False
        except OSError:
            received = b""
        return self._is_enough(conn, received)

    def _is_enough(self, conn: Connection, received: bytes) -> bool:
        """Keep what has been received, nothing at an end, until there is enough of the request; then hand it to the parser."""
        data = self._unfinished.add(conn, received)
        if data is None:
            return False
        # One that comes slowly must not have a place.
        conn.is_to_hash = bool(self.is_to_hash(data)) and raw_http.is_complete(data)
        conn.init()
        conn.unreader.unread(data)
        return True

    def set_accept_enabled(self, enabled: bool | None) -> None:
        """Begin or cease to take connections. At the end, for good: take those that wait already, and have later ones refused at once.

        gunicorn would leave its sockets open for as long as running requests take. Whoever connects meanwhile would be kept waiting,
        and cut off; whoever is refused tries another instance.
        """
        super().set_accept_enabled(enabled)
        if not self.alive and not enabled:
            self.share.leave()
            # Nobody uses them any more; and this may be called once again.
            listeners, self.sockets = self.sockets, []
            for listener in listeners:
                while select.select([listener], [], [], 0)[0] and self._accept(listener):
                    pass
                listener.close()

    def _enqueue(self, conn: Connection) -> None:
        """Have a thread serve a request, or turn it away at once where more of them wait than will be served soon.

        Its time begins here: what waits for a thread behind slow ones must not wait for each of them.
        """
        if self._is_full(conn):
            self._turn_away(conn)
            return
        self._begun[conn] = time.monotonic()
        self._threads.run(partial(self._serve, conn), len(self._begun))

    def _is_full(self, conn: Connection) -> bool:
        """Whether there is no place for a request.

        Those that would find none to hash would be told by the application too (`TooManyWaiting`), but a crowd of them a tenth of a second later,
        and they would have the places of others until then.
        """
        if conn.is_to_hash and sum(other.is_to_hash for other in list(self._begun)) >= self.places_to_hash:
            return True
        return len(self._begun) >= self.cfg.threads + QUEUE

    def _serve(self, conn: Connection) -> None:
        stays = False
        try:
            # Once it is cut off, nobody would hear of what it has done.
            if time.monotonic() - self._begun[conn] <= REQUEST_DEADLINE:
                stays = bool(super().handle(conn))
        finally:
            self._begun.pop(conn, None)
            self._give_back(conn, stays)

    def handle_request(self, req: Any, conn: Any) -> bool:
        """Have the application answer, and send the answer; return whether the connection stays."""
        stays = super().handle_request(req, conn)
        conn.sock.flush()
        return stays

    def _give_back(self, conn: Connection, stays: bool) -> None:
        """Leave a connection to the main thread; the thread of a request calls this, as the last thing.

        The main thread looks for such connections each time before it waits. It is woken only where there is something to do that nothing
        else wakes it for: most connections next have a request to read.
        """
        self._served.append((conn, stays))
        # The main thread ceases to watch a connection before it looks for it here, so one of the two sees what the other has done.
        if not stays or not conn.is_watched or conn.unreader.buf.getvalue() or conn.sock in self._refused:
            self.method_queue.defer(self._take_back)

    def _take_back(self) -> None:
        while self._served:
            self._finish(*self._served.popleft())

    def _turn_away(self, conn: Connection) -> None:
        self._turned_away += 1
        self._turned_away_to_hash += conn.is_to_hash
        data = conn.unreader.take_buffered()
        stays = raw_http.may_stay(data)
        self._answer(conn.sock, 503, "Retry-After: 2", "Connection: keep-alive" if stays else "Connection: close")
        self.refused(conn.sock)
        self._finish(conn, stays)

    def refused(self, client: socket.socket) -> None:
        """Take note that the answer which is on its way to a client asks it to come back later."""
        if self.faces_clients:
            self._refused.add(client)

    def _finish(self, conn: Connection, stays: bool) -> None:
        """Wait for the connection's next request: at once, or after a rest. Or end it."""
        was_refused = conn.sock in self._refused
        self._refused.discard(conn.sock)
        # Who is not watched any more has sent something while it was served, or has gone.
        if not stays or (was_refused and not conn.is_watched and conn.has_ended()):
            self._leave(conn)
        elif was_refused and self.alive:
            self._resting.add(conn)
        else:
            self._await_next(conn)

    def _await_next(self, conn: Connection) -> None:
        try:
            if not conn.is_watched:
                self._watch(conn)
        except OSError as error:
            log.debug("connection_lost", reason=str(error))
            self._leave(conn)
            return
        # Of the next request, which came with the body of this one.
        if begun := conn.unreader.take_buffered():
            if self._is_enough(conn, begun):
                self._enqueue(conn)
            else:
                self._collect(conn)
            return
        conn.timeout = time.monotonic() + (self.cfg.keepalive if self.alive else _LINGER)
        self.keepalived_conns.append(conn)
        conn.queue = self.keepalived_conns

    def _leave(self, conn: Connection) -> None:
        self.nr_conns -= 1
        self._unwatch(conn)
        self._leaving.add(conn)

    def murder_pending(self) -> None:
        """End connections that stay silent, and requests that take too long; gunicorn calls this at least every second."""
        now = time.monotonic()
        if self.alive:
            self.share.tell(self.nr_conns)
        self._take_back()
        for conn in self._resting.take_rested(now if self.alive else math.inf):
            self._await_next(conn)
        if now - self._looked_at < 1:
            return
        self._looked_at = now
        super().murder_pending()
        if self._turned_away:
            log.warning("turned_away", requests=self._turned_away, with_passwords=self._turned_away_to_hash)
            self._turned_away = self._turned_away_to_hash = 0
        self._leaving.close_overdue(now)
        self._unfinished.forget_closed()
        for conn, began_at in list(self._begun.items()):
            if now - began_at > REQUEST_DEADLINE:
                try:
                    # The thread that reads from it wakes up, finds it at its end, and gives up.
                    conn.sock.shutdown(socket.SHUT_RDWR)
                except OSError as error:
                    log.debug("shutdown_failed", reason=str(error))

    def handle_error(self, req: Any, client: socket.socket, addr: Any, exc: BaseException) -> None:
        """Answer what has not become a request with the error envelope. What was sent, which may be a secret, is not logged."""
        status = 400 if isinstance(exc, ParseException) else 500
        if isinstance(exc, LimitRequestLine | LimitRequestHeaders):
            status = 414 if isinstance(exc, LimitRequestLine) else 431
        request_id = self._answer(client, status, "Connection: close")
        log.warning("invalid_request", status=status, error=type(exc).__name__, ip=addr[0] if addr else None, request_id=request_id)

    def _answer(self, client: socket.socket, status: int, *headers: str) -> str:
        """Answer with the error envelope, if the client takes it at once; return the request's id."""
        answer, request_id = raw_http.error_answer(status, *headers)
        try:
            client.send(answer, socket.MSG_DONTWAIT)
        except OSError as error:
            log.debug("error_not_sent", reason=str(error))
        return request_id
