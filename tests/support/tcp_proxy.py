"""A TCP proxy that can be closed and opened, whose target can be changed, and whose connections can be cut."""

import contextlib
import socket
import threading
from collections.abc import Callable
from typing import Self

from psycopg2.extensions import parse_dsn

from tests.support.processes import free_port

Target = tuple[str, int] | str | None


def postgres_target(url: str) -> Target:
    """Return the address of the Postgres of a URL."""
    parts = parse_dsn(url)
    host, port = parts.get("host", "localhost"), int(parts.get("port", 5432))
    return f"{host}/.s.PGSQL.{port}" if host.startswith("/") else (host, port)


class TcpProxy:
    """Accepts connections on its own port while it is open, and forwards each to the target."""

    def __init__(self, target: Target) -> None:
        self._target = target
        self._listener: socket.socket | None = None
        self._ends: list[socket.socket] = []
        self._lock = threading.Lock()
        # A port of our block: while the proxy is closed, no outgoing connection can take it.
        self.port = free_port()
        self.open()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def open(self) -> None:
        """Accept connections, on the same port as before."""
        listener = self._listener = socket.create_server(("127.0.0.1", self.port))
        threading.Thread(target=self._accept, args=(listener,), daemon=True).start()

    def close(self) -> None:
        """Refuse connections, and end the present ones."""
        with self._lock:
            listener, self._listener = self._listener, None
        if listener:
            _hang_up(listener)
        self.cut()

    def lead_to(self, target: Target) -> None:
        """Forward to another target, or to none, and cut all connections."""
        self._target = target
        self.cut()

    def cut(self) -> None:
        """Close all connections."""
        with self._lock:
            ends, self._ends = self._ends, []
        for end in ends:
            _hang_up(end)

    def _accept(self, listener: socket.socket) -> None:
        while True:
            try:
                near, _ = listener.accept()
            except OSError:
                return
            try:
                far = _connect(self._target)
            except OSError:
                near.close()
                continue
            for end in (near, far):
                if end.family == socket.AF_INET:
                    end.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            with self._lock:
                self._ends += [near, far]
                is_closed = self._listener is not listener
            if is_closed:
                self.cut()
                return
            for source, sink, carry in self.lanes(near, far):
                threading.Thread(target=self._carry, args=(source, sink, carry), daemon=True).start()

    def lanes(
        self, near: socket.socket, far: socket.socket
    ) -> list[tuple[socket.socket, socket.socket, Callable]]:
        """Return source, sink and function of each direction."""
        return [(near, far, _all_of_it), (far, near, _all_of_it)]

    def _carry(self, source: socket.socket, sink: socket.socket, carry: Callable) -> None:
        with contextlib.suppress(OSError):
            carry(source, sink)
        _hang_up(source)
        _hang_up(sink)
        with self._lock:
            self._ends = [end for end in self._ends if end not in (source, sink)]


def _connect(target: Target) -> socket.socket:
    if target is None:
        raise ConnectionRefusedError
    if isinstance(target, str):
        connection = socket.socket(socket.AF_UNIX)
        connection.connect(target)
        return connection
    return socket.create_connection(target)


def _all_of_it(source: socket.socket, sink: socket.socket) -> None:
    while data := source.recv(65_536):
        sink.sendall(data)


def _hang_up(end: socket.socket) -> None:
    # Closing does not wake a thread that reads from the socket.
    with contextlib.suppress(OSError):
        end.shutdown(socket.SHUT_RDWR)
    end.close()
