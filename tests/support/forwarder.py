"""A proxy that can be closed and opened."""

import contextlib
import socket
import threading
from typing import Self

from psycopg2.extensions import make_dsn, parse_dsn

from tests.support.processes import free_port


class Forwarder:
    """Forwards connections to the Postgres of a URL, or another server, while it is open."""

    def __init__(self, url: str) -> None:
        self._target = parse_dsn(url)
        self._listener: socket.socket | None = None
        self._connections: list[socket.socket] = []
        self._lock = threading.Lock()
        # Not any free port: while this is closed, an outgoing connection could take that.
        self.port = free_port()
        self.open()
        self.url = make_dsn(url, host="127.0.0.1", port=self.port, sslmode="disable")

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @property
    def database_url(self) -> str:
        """The same as a setting of a service."""
        return f"postgresql://{self._target['user']}@127.0.0.1:{self.port}/{self._target['dbname']}"

    def open(self) -> None:
        self._listener = socket.create_server(("127.0.0.1", self.port))
        threading.Thread(target=self._accept, args=(self._listener,), daemon=True).start()

    def close(self) -> None:
        """End all connections, and refuse new ones."""
        with self._lock:
            ended = [self._listener, *self._connections]
            self._listener, self._connections = None, []
        for connection in filter(None, ended):
            with contextlib.suppress(OSError):
                connection.shutdown(socket.SHUT_RDWR)
            connection.close()

    def _accept(self, listener: socket.socket) -> None:
        while True:
            try:
                client, _ = listener.accept()
            except OSError:
                return
            server = self._connect()
            if not self._keep(listener, client, server):
                return
            for source, target in ((client, server), (server, client)):
                threading.Thread(target=_pump, args=(source, target), daemon=True).start()

    def _keep(self, listener: socket.socket, *pair: socket.socket) -> bool:
        """Keep the ends of a connection for `close`, or close them if that has been called."""
        with self._lock:
            if self._listener is listener:
                self._connections += pair
                return True
        for end in pair:
            end.close()
        return False

    def _connect(self) -> socket.socket:
        host, port = self._target.get("host", "localhost"), int(self._target.get("port", 5432))
        if host.startswith("/"):
            connection = socket.socket(socket.AF_UNIX)
            connection.connect(f"{host}/.s.PGSQL.{port}")
            return connection
        return socket.create_connection((host, port))


def _pump(source: socket.socket, target: socket.socket) -> None:
    with contextlib.suppress(OSError):
        while data := source.recv(65_536):
            target.sendall(data)
    for end in (source, target):
        with contextlib.suppress(OSError):
            end.shutdown(socket.SHUT_RDWR)
        end.close()
