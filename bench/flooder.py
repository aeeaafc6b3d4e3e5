"""Many clients who ask as fast as they are answered, from other loopback addresses, which wrk can't choose.

A loop over sockets, which sends what is ready made and looks at no more of an answer than its status: it
could ask thousands of times a second, many more than are answered. Run as a program of its own, so that it
shares nothing with who measures.
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
    """What became of a flood: how many answers of each status, in how many seconds; `refused_p99` in
    milliseconds is of those with 503, if any.
    """

    statuses: dict[str, int] = field(default_factory=dict)
    seconds: float = 0.0
    refused_p99: float | None = None


@contextmanager
def flood(port: int, clients: int = CLIENTS, addresses: int | None = None) -> Iterator[Flood]:
    """Flood POST /token with wrong passwords inside the context; what became of it is filled in after it.

    Each client has an address of its own, or they share so many.
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
    process.stdout.readline()  # all clients are at work
    try:
        yield result
    finally:
        process.stdin.close()  # which ends it
        result.statuses, result.seconds, result.refused_p99 = json.loads(process.stdout.read())
        process.wait()


def loopback(number: int) -> str:
    """Return the address of that number, of some 63,000 which are this machine's."""
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
        """Return the status, and all that has come; what is smaller than a packet comes whole, or nearly so."""
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
