"""Load from clients in a closed loop, over keep-alive connections, in a process of its own."""

import json
import math
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from statistics import quantiles
from typing import Any

from tests.support.processes import CHECKOUT

CONNECTIONS = 32
JSON, FORM = "application/json", "application/x-www-form-urlencoded"


@dataclass(frozen=True)
class Load:
    """The latencies of responses in milliseconds, by status; `lost` for missing responses. `requests_left` are those
    to send next, with the refresh tokens that clients got last.
    """

    seconds: float
    milliseconds: dict[str, list[float]]
    requests_left: list[str]

    @property
    def failures(self) -> int:
        return sum(len(times) for status, times in self.milliseconds.items() if status >= "4")

    @property
    def requests(self) -> int:
        """The number of responses that are no failure."""
        return len(self._latencies)

    @property
    def per_second(self) -> float:
        return self.requests / self.seconds

    def percentile(self, percent: int, status: str | None = None) -> float:
        """Return a latency of the responses that are no failure, or have a status; `nan` without any."""
        times = self.milliseconds.get(status, []) if status else self._latencies
        return quantiles(times, n=100, method="inclusive")[percent - 1] if len(times) > 1 else math.nan

    @property
    def _latencies(self) -> list[float]:
        return [each for status, times in self.milliseconds.items() if status < "4" for each in times]


def get(path: str, *, token: str = "", cookie: str = "") -> str:
    return f"GET {path} HTTP/1.1\r\nHost: localhost\r\n{_credentials(token, cookie)}\r\n"


def post(path: str, body: dict[str, Any] | str, *, token: str = "", type: str = JSON) -> str:
    return _with_body("POST", path, body, token, type)


def introspection(token: str, service_role_key: str) -> str:
    return post("/introspect", {"token": token}, token=service_role_key)


def put(path: str, body: dict[str, Any], *, token: str) -> str:
    return _with_body("PUT", path, body, token, JSON)


def _with_body(method: str, path: str, body: dict[str, Any] | str, token: str, type: str) -> str:
    text = body if isinstance(body, str) else json.dumps(body)
    head = f"{method} {path} HTTP/1.1\r\nHost: localhost\r\nContent-Type: {type}\r\n"
    return f"{head}{_credentials(token, '')}Content-Length: {len(text)}\r\n\r\n{text}"


def _credentials(token: str, cookie: str) -> str:
    bearer = f"Authorization: Bearer {token}\r\n" if token else ""
    return bearer + (f"Cookie: {cookie}\r\n" if cookie else "")


@dataclass(frozen=True)
class Clients:
    """The process of connected clients, which wait to be started."""

    process: subprocess.Popen[str]
    connections: int
    number: int

    def start(self) -> None:
        assert self.process.stdin
        self.process.stdin.write("start\n")
        self.process.stdin.flush()

    def run(self, seconds: float = 0) -> Load:
        """Start, and return what was measured of all requests or, without their number, of some seconds."""
        self.start()
        time.sleep(seconds)
        return self.stop()

    def stop(self) -> Load:
        """Return what was measured. Stops clients that were not given a number of requests."""
        assert self.process.stdin
        assert self.process.stdout
        if not self.number:
            self.process.stdin.close()
        return Load(**json.loads(self.process.stdout.read()))


def run(port: int, requests: Sequence[str], *, seconds: float, **options: Any) -> Load:
    """Send the requests in turn for some seconds. The `options` are those of `connected`."""
    with connected(port, requests, **options) as clients:
        return clients.run(seconds)


@contextmanager
def sending(port: int, requests: Sequence[str], **options: Any) -> Iterator[Callable[[], Load]]:
    """Send the requests in turn inside the context. Yields a function that stops and returns what was measured."""
    with connected(port, requests, **options) as clients:
        clients.start()
        yield clients.stop


@contextmanager
def connected(
    port: int,
    requests: Sequence[str],
    *,
    number: int = 0,
    connections: int = CONNECTIONS,
    pause: float = 0,
    addresses: int = 1,
    renews: bool = False,
) -> Iterator[Clients]:
    """Connect clients, from a number of loopback addresses.

    They send `number` requests altogether, or requests until they are stopped. `pause` is in seconds, between the
    requests of a connection. With `renews` a request is sent again with the refresh token of its response.
    """
    repeated = list(requests) * math.ceil(connections / len(requests))
    job = {
        "port": port,
        "number": number,
        "connections": connections,
        "pause": pause,
        "addresses": addresses,
        "renews": renews,
    }
    process = subprocess.Popen(
        [sys.executable, "-m", "bench.clients"],
        cwd=CHECKOUT,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert process.stdin
    assert process.stdout
    with process:
        process.stdin.write(json.dumps(job | {"requests": repeated}) + "\n")
        process.stdin.flush()
        process.stdout.readline()  # all clients are connected
        try:
            yield Clients(process, connections, number)
        finally:
            process.kill()
