"""An HTTP or HTTPS server on a free port of loopback, which serves inside the context."""

import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Self

from tests.support.smtp_server import Certificate


class Handler(BaseHTTPRequestHandler):
    def log_message(self, *_: Any) -> None:
        pass


class LocalServer:
    def __init__(self, handler: type[BaseHTTPRequestHandler], tls: Certificate | None = None) -> None:
        self._server = _Server(("127.0.0.1", 0), handler)
        if tls:
            self._server.socket = tls.server_context.wrap_socket(
                self._server.socket, server_side=True, do_handshake_on_connect=False
            )
        self.url = f"http{'s' if tls else ''}://127.0.0.1:{self._server.server_address[1]}"

    def __enter__(self) -> Self:
        threading.Thread(target=self._server.serve_forever, args=(0.02,), daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._server.server_close()


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 64

    def handle_error(self, *_: Any) -> None:
        """Ignore clients that close the connection or refuse the certificate."""
