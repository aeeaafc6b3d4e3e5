"""An HTTP server on loopback that records requests and responds as configured."""

import json
import threading
from collections.abc import Callable
from dataclasses import dataclass
from io import BufferedIOBase
from typing import Any

from tests.support.local_server import Handler, LocalServer, misbehave
from tests.support.smtp_server import Certificate


@dataclass(frozen=True)
class Posted:
    """A request."""

    path: str
    headers: dict[str, str]
    body: bytes


class HttpTarget(LocalServer):
    """Records requests. `behaviour` replaces the response, as `misbehave` does; `answer` returns its body."""

    def __init__(self, tls: Certificate | None = None) -> None:
        self.requests: list[Posted] = []
        self.status = 200
        self.before = b""  # interim responses, sent before the response
        self.headers: dict[str, str] = {}
        self.body = b"{}"
        self.behaviour = ""
        self.answer: Callable[[Any], Any] | None = None
        self.reached = threading.Event()
        target = self

        class Recorder(Handler):
            protocol_version = "HTTP/1.1"

            def do_POST(self) -> None:
                body = self.body()
                if len(body) < self.length:
                    self.close_connection = True
                    return
                headers = {name.lower(): value for name, value in self.headers.items()}
                target.requests.append(Posted(self.path, headers, body))
                target.reached.set()
                self.close_connection = True
                self.wfile.write(target.before)
                if target.answer:
                    answer = json.dumps(target.answer(json.loads(body))).encode()
                    self.reply(200, {"Content-Type": "application/json"}, answer)
                elif target.behaviour:
                    target._misbehave(self.wfile)
                else:
                    self.reply(target.status, target.headers, target.body)

            do_GET = do_POST

        super().__init__(Recorder, tls)

    def _misbehave(self, out: BufferedIOBase) -> None:
        misbehave(out, self.behaviour, self.over)
