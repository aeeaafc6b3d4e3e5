"""What the main thread of a process does: it takes connections, collects their requests, keeps them between two of these, and ends them.

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
from functools import partial
from typing import Any

import structlog
from gunicorn.workers.gthread import PollableMethodQueue, ThreadWorker

from auth import raw_http, scheduling
from auth.client_sockets import ClientSocket
from auth.connections import Connection, Leaving, Line, Resting, Unfinished
from auth.shares import Share

log = structlog.get_logger()

# Seconds that a request may take to arrive (for the first one of a connection, from when that was made), and then to be answered.
REQUEST_DEADLINE = 10
# Seconds for which a process that has more connections than others leaves them the next one: enough for one that sleeps to wake up.
_DEFERENCE = 0.0002
# Seconds for which a process that ends waits for a request, or for the rest of one, of connections that it has.
_LINGER = 2


class _WakeUps(PollableMethodQueue):
    def close(self) -> None:
        """Do nothing: a thread that ends later may still write to its pipe, whose number must not be another file's by then."""


class ConnectionWorker(ThreadWorker):
    """A worker that waits for requests, and has them served (`enqueue`) when a thread can go on with them without waiting."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.method_queue = _WakeUps()
        # Those that wait for their next request, and those that wait for the rest of one; and by the names that gunicorn knows them by.
        self._between, self._collecting = Line(), Line()
        self.keepalived_conns, self.pending_conns = self._between, self._collecting  # type: ignore[assignment]
        self._unfinished = Unfinished()
        self._resting = Resting()
        self._looked_at = 0.0
        # The one that this process keeps to.
        self.core: int | None = None
        self.share = Share()

    def init_process(self) -> None:
        """Begin, on the core that the process keeps to; for good."""
        if self.core is not None:
            scheduling.keep_to(self.core)
        super().init_process()

    def run(self) -> None:
        """Take connections until told to end, and let those that there are come to an end."""
        self._leaving = Leaving(self.poller, self._forget)
        super().run()

    def enqueue(self, conn: Connection, data: bytes) -> None:
        """Have the request served that begins with this."""
        raise NotImplementedError

    def take_back(self) -> None:
        """Take connections back whose requests have been served: `await_next`, `rest` or `leave` each."""
        raise NotImplementedError

    def look_after(self, now: float) -> None:
        """Do what is to be done every second."""
        raise NotImplementedError

    def accept(self, listener: socket.socket) -> None:
        """Take a connection, and wait for its first request with the poller: gunicorn would let a thread wait."""
        self._accept(listener)

    def _accept(self, listener: socket.socket) -> bool:
        """Take a connection, if there is one to be had; return whether there was."""
        if self.alive:
            self.share.tell(self.nr_conns)
            if self.share.is_large():
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
            self.take_back()
        if conn.queue is None:
            # It sends more, or ends, while it is served. That is looked at later; the poller would tell of it again and again.
            self._unwatch(conn)
            if conn.rests and conn.sock.has_ended():
                conn.rests = False
                self.leave(conn)
            return
        try:
            received = conn.sock.recv(raw_http.COLLECTED, socket.MSG_DONTWAIT)
        except BlockingIOError:
            return
        except OSError:
            received = b""
        if not received and conn not in self._unfinished:
            self._take_from_line(conn)
            self.leave(conn)
        else:
            self._go_on(conn, received)

    def _go_on(self, conn: Connection, received: bytes) -> None:
        """Keep what has been received, nothing at an end, until a thread can go on with the request without waiting, or must (an end, a long body)."""
        data = self._unfinished.add(conn, received)
        if data is not None:
            self._take_from_line(conn)
            conn.init()
            self.enqueue(conn, data)
        # The time of one that has begun before goes on.
        elif conn.queue is not self._collecting:
            self._take_from_line(conn)
            self._collect(conn)

    def _collect(self, conn: Connection) -> None:
        """Wait for the rest of a request that has begun, as the first one does with its connection."""
        conn.timeout = time.monotonic() + (REQUEST_DEADLINE if self.alive else _LINGER)
        self._collecting.append(conn)
        conn.queue = self._collecting

    def _take_from_line(self, conn: Connection) -> None:
        if conn.queue is not None:
            conn.queue.remove(conn)
            conn.queue = None

    def set_accept_enabled(self, enabled: bool | None) -> None:
        """Begin or cease to take connections. At the end, for good: take those that wait already, have later ones refused at once, and wait for
        none much longer that has not sent its request.

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
            # gunicorn bounds the wait of those alone that are between two requests. Any other would have the process killed in the end.
            for conn in self._collecting:
                conn.timeout = min(conn.timeout or math.inf, time.monotonic() + _LINGER)

    def await_next(self, conn: Connection) -> None:
        """Wait for the next request of a connection."""
        try:
            if not conn.is_watched:
                self._watch(conn)
        except OSError as error:
            log.debug("connection_lost", reason=str(error))
            self.leave(conn)
            return
        # Of the next request, which came with the body of this one.
        if begun := conn.unreader.take_buffered():
            self._go_on(conn, begun)
            return
        conn.timeout = time.monotonic() + (self.cfg.keepalive if self.alive else _LINGER)
        self._between.append(conn)
        conn.queue = self._between

    def rest(self, conn: Connection) -> None:
        """Wait for the next request of a connection after a while; at once, where there is no time for that."""
        if self.alive:
            self._resting.add(conn)
        else:
            self.await_next(conn)

    def leave(self, conn: Connection) -> None:
        """End a connection."""
        self._unwatch(conn)
        self._leaving.add(conn)

    def _forget(self) -> None:
        self.nr_conns -= 1

    def murder_pending(self) -> None:
        """End connections that stay silent, or send too slowly; gunicorn calls this at least every second, and before it waits."""
        now = time.monotonic()
        if self.alive:
            self.share.tell(self.nr_conns)
        self.take_back()
        for conn in self._resting.take_rested(now if self.alive else math.inf):
            self.await_next(conn)
        if now - self._looked_at < 1:
            return
        self._looked_at = now
        super().murder_pending()
        self._leaving.close_overdue(now)
        self._unfinished.forget_closed()
        self.look_after(now)
