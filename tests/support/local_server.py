"""An HTTP or HTTPS server on a free port of loopback, which serves inside the context."""

import socket
import threading
from collections.abc import Mapping
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from io import BufferedIOBase
from typing import Any, Self

from tests.support.smtp_server import Certificate


class Handler(BaseHTTPRequestHandler):
    # One packet for each response: else the body waits for the delayed acknowledgement of the head.
    wbufsize = -1
    disable_nagle_algorithm = True

    def log_message(self, *_: Any) -> None:
        pass

    def body(self) -> bytes:
        """Return the body, which is short if the client was killed while it sent it."""
        return self.rfile.read(self.length)

    @property
    def length(self) -> int:
        return int(self.headers.get("Content-Length", 0))

    def reply(self, status: int, headers: Mapping[str, str], body: bytes = b"") -> None:
        self.send_response(status)
        for name, value in {"Content-Length": str(len(body)), **headers}.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(body)


def misbehave(out: BufferedIOBase, behaviour: str, over: threading.Event) -> None:
    """Misbehave until `over`, or until the client closes the connection.

    `close` ends at once, `hang` is silent, `drip` and `drip body` send a byte of the head or of the body now and
    then, and `endless` sends a body without end.
    """
    head = {"drip": b"", "drip body": b"Content-Length: 1000000\r\n\r\n"}
    head["endless"] = b"Content-Type: application/json\r\nConnection: close\r\n\r\n"
    if behaviour in head:
        out.write(b"HTTP/1.1 200 OK\r\n" + head[behaviour])
    while behaviour != "close" and not over.wait(0 if behaviour == "endless" else 0.05):
        if behaviour != "hang":
            out.write(b"[" * 65_536 if behaviour == "endless" else b"X")
            out.flush()


class LocalServer:
    """`over` ends what `misbehave` does."""

    def __init__(self, handler: type[BaseHTTPRequestHandler], tls: Certificate | None = None) -> None:
        self.over = threading.Event()
        self._server = _Server(("127.0.0.1", 0), handler)
        if tls:
            self._server.socket = tls.server_context.wrap_socket(
                self._server.socket, server_side=True, do_handshake_on_connect=False
            )
        self.url = f"http{'s' if tls else ''}://127.0.0.1:{self._server.server_address[1]}"

    def __enter__(self) -> Self:
        # Not by serve_forever, which would look fifty times a second whether to end.
        self._is_closed = False
        self._thread = threading.Thread(target=self._serve, daemon=True)
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.over.set()
        self._is_closed = True
        self._server.socket.shutdown(socket.SHUT_RDWR)
        self._thread.join()
        self._server.server_close()

    def _serve(self) -> None:
        while not self._is_closed:
            self._server.handle_request()


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 64

    def handle_error(self, *_: Any) -> None:
        """Ignore clients that close the connection or refuse the certificate."""
