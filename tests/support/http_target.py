"""An HTTP server on loopback that records requests and responds as configured."""

import threading
from dataclasses import dataclass
from typing import Any

from tests.support.local_server import Handler, LocalServer
from tests.support.smtp_server import Certificate


@dataclass(frozen=True)
class Posted:
    """A request."""

    path: str
    headers: dict[str, str]
    body: bytes


class HttpTarget(LocalServer):
    """Records requests. `behaviour` replaces the response: `hang`, `drip` or `close`."""

    def __init__(self, tls: Certificate | None = None) -> None:
        self.requests: list[Posted] = []
        self.status = 200
        self.headers: dict[str, str] = {}
        self.body = b"{}"
        self.behaviour = ""
        self.over = threading.Event()
        self.reached = threading.Event()
        target = self

        class Recorder(Handler):
            protocol_version = "HTTP/1.1"

            def do_POST(self) -> None:
                length = int(self.headers.get("Content-Length", 0))
                body = self.rfile.read(length)
                if len(body) < length:
                    # The sender was killed in the middle of the request.
                    self.close_connection = True
                    return
                target.requests.append(
                    Posted(self.path, {name.lower(): value for name, value in self.headers.items()}, body)
                )
                target.reached.set()
                self.close_connection = True
                if target.behaviour:
                    target._misbehave(self.wfile)
                    return
                self.send_response(target.status)
                for name, value in {"Content-Length": str(len(target.body)), **target.headers}.items():
                    self.send_header(name, value)
                self.end_headers()
                self.wfile.write(target.body)

            do_GET = do_POST

        super().__init__(Recorder, tls)

    def __exit__(self, *_: object) -> None:
        self.over.set()
        super().__exit__()

    def _misbehave(self, out: Any) -> None:
        if self.behaviour == "drip":
            out.write(b"HTTP/1.1 200 OK\r\n")
        elif self.behaviour == "drip body":
            out.write(b"HTTP/1.1 200 OK\r\nContent-Length: 1000000\r\n\r\n")
        while self.behaviour != "close" and not self.over.wait(0.05):
            if self.behaviour.startswith("drip"):
                out.write(b"X")
                out.flush()
