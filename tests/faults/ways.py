"""Ways to a server: one that leads elsewhere when it is bent, and one to Postgres that is cut at a message."""

import contextlib
import socket
import threading
from collections.abc import Callable
from typing import Any
from urllib.parse import quote

from psycopg2.extensions import parse_dsn

Target = tuple[str, int] | str


def postgres_target(url: str) -> Target:
    """Return where the Postgres of a URL listens."""
    parts = parse_dsn(url)
    host, port = parts.get("host", "localhost"), int(parts.get("port", 5432))
    return f"{host}/.s.PGSQL.{port}" if host.startswith("/") else (host, port)


class Way:
    """Takes connections at a port of its own, and leads each to a target."""

    def __init__(self, target: Target) -> None:
        self._target = target
        self._ends: list[socket.socket] = []
        self._lock = threading.Lock()
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port = self._listener.getsockname()[1]
        threading.Thread(target=self._accept, daemon=True).start()

    def bend(self, target: Target) -> None:
        """Lead elsewhere from now on; what is connected is cut off."""
        self._target = target
        self.cut()

    def cut(self) -> None:
        """End all connections."""
        with self._lock:
            ends, self._ends = self._ends, []
        for end in ends:
            _hang_up(end)

    def end(self) -> None:
        _hang_up(self._listener)
        self.cut()

    def _accept(self) -> None:
        while True:
            try:
                near, _ = self._listener.accept()
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
            for source, sink, carry in self.lanes(near, far):
                threading.Thread(target=self._carry, args=(source, sink, carry), daemon=True).start()

    def lanes(self, near: socket.socket, far: socket.socket) -> list[tuple[socket.socket, socket.socket, Callable]]:
        """Return from where to where it carries, and what by."""
        return [(near, far, _all_of_it), (far, near, _all_of_it)]

    def _carry(self, source: socket.socket, sink: socket.socket, carry: Callable) -> None:
        with contextlib.suppress(OSError):
            carry(source, sink)
        _hang_up(source)
        _hang_up(sink)
        with self._lock:
            self._ends = [end for end in self._ends if end not in (source, sink)]


class Conversation(Way):
    """A way to Postgres that counts the messages of both sides together, and ends the connection instead of passing on the n-th."""

    def __init__(self, url: str) -> None:
        super().__init__(postgres_target(url))
        parts = parse_dsn(url)
        who = quote(parts["user"], safe="") + (f":{quote(parts['password'], safe='')}" if "password" in parts else "")
        # What is encrypted can't be counted.
        self.url = f"postgresql://{who}@127.0.0.1:{self.port}/{parts['dbname']}?sslmode=disable&gssencmode=disable"
        self._count_lock = threading.Lock()
        self.said: list[str] = []
        self._cut_at = 0

    def begin(self, cut_at: int = 0) -> None:
        """Count from here; 0 cuts nothing."""
        with self._count_lock:
            self.said, self._cut_at = [], cut_at

    def lanes(self, near: socket.socket, far: socket.socket) -> list[tuple[socket.socket, socket.socket, Callable]]:
        """Return both directions; of what a client says, the first message has no type."""
        return [
            (near, far, lambda source, sink: self._pass_on(source, sink, ">", first_is_typeless=True)),
            (far, near, lambda source, sink: self._pass_on(source, sink, "<", first_is_typeless=False)),
        ]

    def _pass_on(self, source: socket.socket, sink: socket.socket, direction: str, first_is_typeless: bool) -> None:
        reader: Any = source.makefile("rb")
        is_typeless = first_is_typeless
        while True:
            type = b"" if is_typeless else reader.read(1)
            length = reader.read(4)
            if len(length) < 4:
                return
            message = type + length + reader.read(int.from_bytes(length, "big") - 4)
            is_typeless = False
            with self._count_lock:
                self.said.append(direction + (type.decode() or "startup"))
                if self._cut_at and len(self.said) >= self._cut_at:
                    return
            sink.sendall(message)


def _connect(target: Target) -> socket.socket:
    if isinstance(target, str):
        connection = socket.socket(socket.AF_UNIX)
        connection.connect(target)
        return connection
    return socket.create_connection(target)


def _all_of_it(source: socket.socket, sink: socket.socket) -> None:
    while data := source.recv(65_536):
        sink.sendall(data)


def _hang_up(end: socket.socket) -> None:
    # A thread that reads from it wakes up by the first alone.
    with contextlib.suppress(OSError):
        end.shutdown(socket.SHUT_RDWR)
    end.close()
