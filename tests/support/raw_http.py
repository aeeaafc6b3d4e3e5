"""HTTP as raw bytes, for requests that no client library would send."""

import json
import socket
from typing import Any, NamedTuple

HOST = b"Host: localhost\r\n"


class Reply(NamedTuple):
    """A response as received."""

    status: int
    headers: dict[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.body)


def connect(port: int, sent: bytes = b"", timeout: float = 60) -> socket.socket:
    """Open a connection and send bytes."""
    connection = socket.create_connection(("127.0.0.1", port), timeout=timeout)
    connection.sendall(sent)
    return connection


def exchange(port: int, sent: bytes) -> list[Reply]:
    """Send bytes and half-close; return all responses until the server closes the connection."""
    with connect(port) as connection:
        try:
            connection.sendall(sent)
            connection.shutdown(socket.SHUT_WR)
        except OSError:
            pass  # The server responded before it had read everything.
        return read(connection)


def ask(port: int, target: str, method: str = "GET", body: dict[str, Any] | None = None) -> Reply:
    """Send a request whose method and target no client library has changed."""
    content = b"" if body is None else json.dumps(body).encode()
    kind = f"Content-Type: application/json\r\nContent-Length: {len(content)}\r\n" if content else ""
    head = f"{method} {target} HTTP/1.1\r\nConnection: close\r\n{kind}".encode()
    (reply,) = exchange(port, head + HOST + b"\r\n" + content)
    return reply


def read(connection: socket.socket) -> list[Reply]:
    """Return the responses until the server closes the connection."""
    data = b""
    try:
        while part := connection.recv(65536):
            data += part
    except ConnectionError:
        pass
    replies = []
    while data:
        head, _, data = data.partition(b"\r\n\r\n")
        lines = head.decode("latin-1").split("\r\n")
        headers = dict(line.split(": ", 1) for line in lines[1:])
        length = int(headers.get("Content-Length", len(data)))
        status = int(lines[0].split(" ")[1])
        if status != 100:
            replies.append(Reply(status, headers, data[:length]))
            data = data[length:]
    return replies
