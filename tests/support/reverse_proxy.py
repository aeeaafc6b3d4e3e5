"""A reverse proxy as people set it up, well or badly."""

import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Self

import requests

from tests.support.smtp_server import Certificate


class ReverseProxy:
    """Forwards GET to a URL. `forwards` is what it does with X-Forwarded-For: `append`, `replace` or `keep`."""

    def __init__(
        self, target: str, forwards: str = "append", proto: str | None = None, tls: Certificate | None = None
    ) -> None:
        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                headers = {name: value for name, value in self.headers.items() if name != "Host"}
                sent = headers.get("X-Forwarded-For")
                peer = self.client_address[0]
                if forwards == "replace" or (forwards == "append" and not sent):
                    headers["X-Forwarded-For"] = peer
                elif forwards == "append":
                    headers["X-Forwarded-For"] = f"{sent}, {peer}"
                if proto:
                    headers["X-Forwarded-Proto"] = proto
                response = requests.get(target + self.path, headers=headers, timeout=10)
                self.send_response(response.status_code)
                self.send_header("Content-Type", response.headers["Content-Type"])
                self.end_headers()
                self.wfile.write(response.content)

            def log_message(self, *_: Any) -> None:
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        if tls:
            self._server.socket = tls.server_context.wrap_socket(
                self._server.socket, server_side=True, do_handshake_on_connect=False
            )
        self.url = f"http{'s' if tls else ''}://127.0.0.1:{self._server.server_address[1]}"

    def __enter__(self) -> Self:
        threading.Thread(target=self._server.serve_forever, args=(0.05,), daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._server.server_close()
