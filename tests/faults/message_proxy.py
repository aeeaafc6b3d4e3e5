"""A proxy to Postgres that cuts the connection at a message."""

import socket
import threading
from collections.abc import Callable
from typing import Any
from urllib.parse import quote

from psycopg2.extensions import parse_dsn

from tests.support.tcp_proxy import TcpProxy, postgres_target


class Conversation(TcpProxy):
    """A proxy to Postgres that counts the messages of both sides, and closes the connection at the n-th."""

    def __init__(self, url: str) -> None:
        super().__init__(postgres_target(url))
        parts = parse_dsn(url)
        user = quote(parts["user"], safe="") + (
            f":{quote(parts['password'], safe='')}" if "password" in parts else ""
        )
        # Encrypted messages cannot be counted.
        self.url = (
            f"postgresql://{user}@127.0.0.1:{self.port}/{parts['dbname']}?sslmode=disable&gssencmode=disable"
        )
        self._count_lock = threading.Lock()
        self.said: list[str] = []
        self._cut_at = 0

    def begin(self, cut_at: int = 0) -> None:
        """Count from here, and cut at the message `cut_at`; 0 cuts nothing."""
        with self._count_lock:
            self.said, self._cut_at = [], cut_at

    def lanes(
        self, near: socket.socket, far: socket.socket
    ) -> list[tuple[socket.socket, socket.socket, Callable]]:
        """Return both directions; the first message of a client has no type."""
        return [
            (near, far, lambda source, sink: self._pass_on(source, sink, ">", first_is_typeless=True)),
            (far, near, lambda source, sink: self._pass_on(source, sink, "<", first_is_typeless=False)),
        ]

    def _pass_on(
        self, source: socket.socket, sink: socket.socket, direction: str, first_is_typeless: bool
    ) -> None:
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
