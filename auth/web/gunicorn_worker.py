"""gunicorn's gevent worker, with request deadlines, a bounded stop, and our error envelope."""

import time
from contextlib import suppress
from typing import Any, ClassVar

import gevent
from gevent import select, socket
from gunicorn.http.errors import ParseException
from gunicorn.util import close_graceful
from gunicorn.workers.ggevent import GeventWorker

from auth.web.response_headers import refuse

REQUEST_DEADLINE = 30  # seconds, from the first byte of a request to the last byte of its response
LINGER = 2  # seconds that a stopping worker waits for clients that have sent nothing, or half a request
DRAINED = 65_536  # bytes read of an unread body, by us and by close_graceful; gunicorn's parser has no limit


class Connection(socket.socket):
    """A client's connection. A request begins with its first byte; between requests, `begun_at` is 0."""

    begun_at = 0.0
    is_reading = False
    head: bytes | None = None  # of a response, held back to be sent with its body: 4 % of GET /user

    def recv(self, *args: Any) -> bytes:
        self.is_reading = True
        data = super().recv(*args)
        self.is_reading = False
        self.begun_at = self.begun_at or time.monotonic()
        return data

    def sendall(self, data: Any, flags: int = 0) -> None:
        head, self.head = self.head, None
        if head == b"":
            self.head = data
        elif head or data:
            super().sendall((head or b"") + data, flags)


class Worker(GeventWorker):
    """Serves each connection in a greenlet."""

    connections: ClassVar[dict[gevent.Greenlet, Connection]] = {}
    ends_at = float("inf")

    def patch(self) -> None:  # gunicorn.conf.py has patched the modules before they were used
        self.sockets = [socket.socket(s.FAMILY, fileno=s.sock.detach()) for s in self.sockets]

    def notify(self) -> None:  # every second, also while the worker stops
        super().notify()
        now = time.monotonic()
        for greenlet, client in list(self.connections.items()):
            if 0 < client.begun_at < now - REQUEST_DEADLINE or (client.is_reading and now > self.ends_at):
                greenlet.kill(gevent.Timeout, block=False)

    def handle_exit(self, sig: int, frame: Any) -> None:
        gevent.spawn(self._stop)  # a signal handler must not wait

    def _stop(self) -> None:
        with gevent.Timeout(LINGER, False):  # closing the listening socket would reset its backlog
            while select.select(self.sockets, [], [], 0)[0]:
                gevent.sleep(0.001)
        self.alive, self.ends_at = False, time.monotonic() + LINGER

    def handle(self, listener: Any, client: Any, addr: Any) -> None:
        with Connection(client.family, client.type, client.proto, client.detach()) as connection:
            self.connections[gevent.getcurrent()] = connection
            try:
                super().handle(listener, connection, addr)
            finally:
                del self.connections[gevent.getcurrent()]

    def handle_request(self, listener_name: Any, req: Any, sock: Any, addr: Any) -> bool:
        if not sock.begun_at:
            gevent.sleep(0)  # the request was pipelined: without a pause, no other connection would be served
            sock.begun_at = time.monotonic()
        sock.head = b""
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
        client.head = None
        with suppress(OSError):
            client.sendall(refuse(exc, addr[0]))
        close_graceful(client)
