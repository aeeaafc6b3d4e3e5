"""A proxy that adds TLS to a Postgres, which the embedded one lacks."""

import contextlib
import select
import socket
import ssl
from collections.abc import Callable
from urllib.parse import quote

from psycopg2.extensions import parse_dsn

from tests.support.smtp_server import Certificate
from tests.support.tcp_proxy import TcpProxy, postgres_target

_SSL_REQUEST = (8).to_bytes(4) + (80877103).to_bytes(4)


class TlsPostgres(TcpProxy):
    """Forwards to the Postgres of a URL, by TLS if it has a certificate."""

    def __init__(self, url: str, certificate: Certificate | None) -> None:
        self._certificate = certificate
        self._parts = parse_dsn(url)
        super().__init__(postgres_target(url))

    def url(self, host: str = "db.example", **options: str) -> str:
        """Return a URL with the name of another machine, and the address of this one."""
        user, password, name = (
            quote(self._parts.get(part, ""), "") for part in ("user", "password", "dbname")
        )
        query = "".join(f"&{option}={quote(value, '')}" for option, value in options.items())
        return f"postgresql://{user}:{password}@{host}:{self.port}/{name}?hostaddr=127.0.0.1{query}"

    def lanes(
        self, near: socket.socket, far: socket.socket
    ) -> list[tuple[socket.socket, socket.socket, Callable]]:
        with contextlib.suppress(OSError):  # the client may refuse the certificate
            request = near.recv(8)
            if request != _SSL_REQUEST:
                far.sendall(request)
            elif self._certificate:
                near.sendall(b"S")
                near = self._certificate.server_context.wrap_socket(near, server_side=True)
                return [(near, far, _both_ways)]
            else:
                near.sendall(b"N")
        return super().lanes(near, far)


def _both_ways(near: ssl.SSLSocket, far: socket.socket) -> None:
    """Forward in one thread: OpenSSL does not allow two on one connection, and Python 3.11 takes no lock."""
    with contextlib.suppress(ValueError):  # another thread has closed the socket
        while True:
            ready = [near] if near.pending() else select.select([near, far], [], [])[0]
            for source in ready:
                data = source.recv(65_536)
                if not data:
                    return
                (far if source is near else near).sendall(data)
