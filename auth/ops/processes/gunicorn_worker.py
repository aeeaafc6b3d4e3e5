"""gunicorn's gevent worker, with request deadlines, a bounded stop, and our error envelope."""

import time
from contextlib import suppress
from typing import Any, ClassVar
from weakref import WeakKeyDictionary

import gevent.socket
from gevent.monkey import get_original
from gunicorn.http.errors import LimitRequestHeaders, LimitRequestLine, ParseException
from gunicorn.util import close_graceful
from gunicorn.workers.ggevent import GeventWorker

from auth.ops.processes import backlog, open_files
from auth.ops.processes.gunicorn_errors import refuse

REQUEST_DEADLINE = 30  # seconds, from the first byte of a request to the last byte of its response
LINGER = 2  # seconds for which a stopping worker waits for clients that have sent nothing, or half a request
PLACE = 0.01  # seconds for each try of a stopping worker to take the only place in its backlog
TRIES = 50  # then it closes without
SILENCE = 1  # seconds for which a busy worker waits for the first byte of a new connection
DRAINED = 65_536  # bytes read of an unread body, by us and by close_graceful; gunicorn's parser has no limit


class ClientSocket(gevent.socket.socket):
    """A client's connection. A request begins with its first byte; between requests, `begun_at` is 0."""

    accepted_at, begun_at, is_reading, is_silent = 0.0, 0.0, False, True
    first_data, last_data = b"", b""  # of a request
    head: bytes | None = None  # of a response; it waits to be sent in one segment with the body

    def recv(self, *args: Any) -> bytes:
        self.is_reading = True
        self.last_data = data = super().recv(*args)
        self.is_reading = self.is_silent = False
        if not self.begun_at:
            self.begun_at, self.first_data = time.monotonic(), data
        return data

    def sendall(self, data: Any, flags: int = 0) -> None:
        head, self.head = self.head, None
        if head == b"":
            self.head = data
        elif head or data:
            super().sendall((head or b"") + data, flags)


Socket = get_original("socket", "socket")  # gevent unwraps its own kind


class Listener(Socket):  # type: ignore[misc,valid-type]
    # Serves its backlog before it closes, because closing would reset those connections.
    def setblocking(self, _flag: bool) -> None:
        pass  # gunicorn would make it blocking

    def close(self) -> None:
        accepted, own = self.accept_all(), None
        if backlog.ends():
            own, others = self.take_place()
            accepted += others
        super().close()
        if own:
            own.close()
        self.worker.ends_at = time.monotonic() + LINGER
        gevent.joinall(accepted, timeout=5)  # gunicorn waits for the others

    def accept_all(self) -> list[gevent.Greenlet]:
        accepted = []
        with suppress(OSError):  # BlockingIOError: the backlog is empty
            while True:
                accepted.append(gevent.spawn(self.worker.handle, self, *self.accept()))
        return accepted

    def take_place(self) -> tuple[Any, list[gevent.Greenlet]]:
        """Shorten the backlog to one place, and take it. Return our connection, and the greenlets of those
        accepted before.

        While the place is taken, Linux drops the first packet of a connection. The client sends it again
        after a second: to the next service, or it is refused.
        """
        self.listen(0)
        accepted: list[gevent.Greenlet] = []
        for _ in range(TRIES):
            own = Socket(self.family)
            own.settimeout(PLACE)
            with suppress(OSError):  # another connection has the place
                own.connect(self.getsockname())
                return own, accepted
            own.close()
            accepted += self.accept_all()
        return None, accepted


class Worker(GeventWorker):
    connections: ClassVar[WeakKeyDictionary[gevent.Greenlet, ClientSocket]] = WeakKeyDictionary()
    ends_at = float("inf")

    def init_process(self) -> None:
        # Plain attributes, because a request reads 30 settings, each by two calls: 9 % of GET /user.
        vars(self.cfg).update({name: setting.get() for name, setting in self.cfg.settings.items()})
        self.worker_connections = open_files.make_room(self.worker_connections)
        super().init_process()

    def patch(self) -> None:  # gunicorn.conf.py has patched the modules before they were used
        self.sockets: list[Any] = [Listener(fileno=s.sock.detach()) for s in self.sockets]
        Listener.worker = self

    def notify(self) -> None:  # every second, also while the worker stops
        super().notify()
        now = time.monotonic()
        for greenlet, client in list(self.connections.items()):
            if 0 < client.begun_at < now - REQUEST_DEADLINE or (client.is_reading and now > self.ends_at):
                greenlet.kill(gevent.Timeout, block=False)

    def handle(self, listener: Any, client: Any, addr: Any) -> None:
        connection = ClientSocket(fileno=client.detach())
        connection.accepted_at = time.monotonic()
        self.make_room(connection.accepted_at)
        self.connections[gevent.getcurrent()] = connection
        # gunicorn asks the second argument for the address of the listener, which a stop may have closed.
        super().handle(connection, connection, addr)

    def make_room(self, now: float) -> None:
        """Close the oldest connection that has sent nothing, if more than half of all are taken.

        While all are taken, gunicorn would accept none.
        """
        half = self.worker_connections // 2
        live = [(greenlet, client) for greenlet, client in self.connections.items() if not greenlet.dead]
        silent = [(greenlet, client) for greenlet, client in live if client.is_silent]
        if len(live) < half or not silent:
            return
        greenlet, oldest = silent[0]
        if len(live) + 1 >= self.worker_connections or oldest.accepted_at < now - SILENCE:
            oldest.is_silent = False
            greenlet.kill(gevent.Timeout, block=False)

    def handle_request(self, listener_name: Any, req: Any, sock: Any, addr: Any) -> bool:
        # Often the next request has already arrived. Without a pause, no other connection would be served.
        gevent.sleep(0)
        sock.begun_at = sock.begun_at or time.monotonic()
        sock.head = b""
        if req.version > (1, 1):  # gunicorn copies the version into the status line (RFC 9110, section 2.5)
            req.version = (1, 1)
        # Proxies that speak HTTP/2 may pass each cookie on in a header of its own (RFC 9113, section 8.2.3).
        # gunicorn would join them by commas.
        cookies = [value for name, value in req.headers if name == "COOKIE"]
        if len(cookies) > 1:
            others = [header for header in req.headers if header[0] != "COOKIE"]
            req.headers = [*others, ("COOKIE", "; ".join(cookies))]
        # Tell proxies that the connection closes: they would send the next user's request on it.
        if getattr(req.body.reader, "length", DRAINED) >= DRAINED:
            req.force_close()
        try:
            super().handle_request(listener_name, req, sock, addr)
            sock.sendall(b"")  # the head of a response without a body
            with suppress(ParseException):  # an error sent for a bad chunk would answer the next request
                if len(req.body.read(DRAINED)) < DRAINED:
                    sock.begun_at = 0.0
                    return True
            raise StopIteration
        except StopIteration:
            sock.sendall(b"")
            close_graceful(sock)
            raise

    def handle_error(self, req: Any, client: Any, addr: Any, exc: BaseException) -> None:
        if isinstance(exc, gevent.Timeout):
            return
        with suppress(OSError):
            gevent.socket.socket.sendall(client, refuse(exc, addr[0], self.client_headers(client, exc)))
        close_graceful(client)

    def client_headers(self, client: Any, exc: BaseException) -> bytes:
        """Return data with the headers that identify the client, if they arrived: those before a header, or
        after a request line, that is too long."""
        name = "first_data" if isinstance(exc, LimitRequestHeaders) else "last_data"
        data: bytes = getattr(client, name, b"")
        if isinstance(exc, LimitRequestLine) and b"\r\n\r\n" not in data:
            with gevent.Timeout(SILENCE, False):
                data += client.recv(DRAINED)
        return data
