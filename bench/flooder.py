"""Many clients in a closed loop, each with its own loopback address, which wrk cannot do.

A loop over sockets sends prepared requests and reads only the status of the responses, so it can send
thousands of requests a second, many more than the service answers. It runs as a separate process, to share
nothing with the process that measures.
"""

import json
import selectors
import socket
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

CLIENTS = 64
_WRONG = "Wrong-Horse-1"


@dataclass
class Flood:
    """The result of a flood: the number of responses by status, and the duration in seconds.

    `refused_p99` is in milliseconds, over the responses with 503; None without any.
    """

    statuses: dict[str, int] = field(default_factory=dict)
    seconds: float = 0.0
    refused_p99: float | None = None


@contextmanager
def flood(port: int, clients: int = CLIENTS, addresses: int | None = None) -> Iterator[Flood]:
    """Flood POST /token with wrong passwords inside the context. The result is filled in at its end.

    Each client has its own address, unless they share a number of `addresses`.
    """
    result = Flood()
    numbers = map(str, (port, clients, addresses or clients))
    process = subprocess.Popen(
        [sys.executable, "-m", "bench.flooder", *numbers],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert process.stdin
    assert process.stdout
    process.stdout.readline()  # all clients are sending
    try:
        yield result
    finally:
        process.stdin.close()  # ends the process
        result.statuses, result.seconds, result.refused_p99 = json.loads(process.stdout.read())
        process.wait()


def loopback(number: int) -> str:
    """Return one of 63,000 loopback addresses."""
    return f"127.0.{1 + number // 250}.{1 + number % 250}"


class _Client:
    def __init__(self, port: int, number: int, address: int) -> None:
        self._port = port
        self._address = loopback(address)
        self._number = number
        self._sent = 0
        self.connect()

    def connect(self) -> None:
        self.socket = socket.create_connection(
            ("127.0.0.1", self._port), timeout=30, source_address=(self._address, 0)
        )

    def ask(self) -> None:
        self._sent += 1
        user = (self._number * 7 + self._sent * 13) % 900 + 1
        body = f'{{"email": "user{user}@bench.example", "password": "{_WRONG}"}}'
        head = f"POST /token?grant_type=password HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n"
        self.began = time.monotonic()
        self.socket.sendall((head + body).encode())

    def answer(self) -> tuple[str, bytes]:
        """Return the status and the bytes received; small responses almost always arrive whole."""
        try:
            answer = self.socket.recv(65536)
            if answer and b"Connection: close" not in answer and answer.endswith(b"\r\n\r\n"):
                answer += self.socket.recv(65536)
        except OSError:
            answer = b""
        return answer[9:12].decode() or "lost", answer


def _run(port: int, number: int, addresses: int) -> None:
    statuses: Counter[str] = Counter()
    refused: list[float] = []
    selector = selectors.DefaultSelector()
    selector.register(sys.stdin, selectors.EVENT_READ)
    clients = [_Client(port, each, each % addresses) for each in range(number)]
    began = time.monotonic()
    for client in clients:
        client.ask()
        selector.register(client.socket, selectors.EVENT_READ, client)
    print("flooding", flush=True)
    while True:
        for key, _ in selector.select(1):
            client = key.data
            if client is None:
                seconds = time.monotonic() - began
                refused.sort()
                print(
                    json.dumps(
                        [statuses, seconds, refused[int(len(refused) * 0.99)] * 1000 if refused else None]
                    )
                )
                return
            status, said = client.answer()
            statuses[status] += 1
            assert status != "503" or b"\r\nRetry-After: " in said, said
            if status == "503":
                refused.append(time.monotonic() - client.began)
            try:
                if status == "lost":
                    raise ConnectionError
                client.ask()
            except OSError:
                selector.unregister(client.socket)
                client.socket.close()
                client.connect()
                client.ask()
                selector.register(client.socket, selectors.EVENT_READ, client)


if __name__ == "__main__":
    _run(*map(int, sys.argv[1:]))
