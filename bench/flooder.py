"""Many clients who ask as fast as they are answered, each from a loopback address of its own, which wrk can't choose.

A loop over sockets, which sends what is ready made and looks at no more of an answer than its status: it could ask thousands of
times a second, many more than are answered. Run as a program of its own, so that it shares nothing with who measures.
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
    """What became of a flood: how many answers of each status, in how many seconds; `refused_p99` in milliseconds is of those with 503."""

    statuses: dict[str, int] = field(default_factory=dict)
    seconds: float = 0.0
    refused_p50: float = 0.0
    refused_p99: float = 0.0


@contextmanager
def flood(port: int, clients: int = CLIENTS) -> Iterator[Flood]:
    """Flood POST /token with wrong passwords inside the context; what became of it is filled in after it."""
    result = Flood()
    process = subprocess.Popen([sys.executable, "-m", "bench.flooder", str(port), str(clients)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert process.stdin
    assert process.stdout
    process.stdout.readline()  # all clients are at work
    try:
        yield result
    finally:
        process.stdin.close()  # which ends it
        result.__dict__.update(json.loads(process.stdout.read()))
        process.wait()


class _Client:
    def __init__(self, port: int, number: int) -> None:
        self._port = port
        self._address = f"127.0.{1 + number // 250}.{1 + number % 250}"
        self._number = number
        self._sent = 0
        self.was_refused = False
        self.connect()

    def connect(self) -> None:
        self.socket = socket.create_connection(("127.0.0.1", self._port), timeout=30, source_address=(self._address, 0))

    def ask(self) -> None:
        self._sent += 1
        user = (self._number * 7 + self._sent * 13) % 900 + 1
        body = f'{{"email": "user{user}@bench.example", "password": "{_WRONG}"}}'
        head = f"POST /token?grant_type=password HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n"
        self.began = time.monotonic()
        self.socket.sendall((head + body).encode())

    def answer(self) -> str:
        """Return the status; what is smaller than a packet comes whole, or nearly so."""
        try:
            answer = self.socket.recv(65536)
            if answer and b"Connection: close" not in answer and answer.endswith(b"\r\n\r\n"):
                answer += self.socket.recv(65536)
        except OSError:
            answer = b""
        return answer[9:12].decode() or "lost"


def _run(port: int, number: int) -> None:
    statuses: Counter[str] = Counter()
    refused: list[float] = []
    selector = selectors.DefaultSelector()
    selector.register(sys.stdin, selectors.EVENT_READ)
    clients = [_Client(port, each) for each in range(number)]
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
                median, last = (refused[int(len(refused) * share)] * 1000 if refused else 0.0 for share in (0.5, 0.99))
                print(json.dumps({"statuses": statuses, "seconds": seconds, "refused_p50": median, "refused_p99": last}))
                return
            status = client.answer()
            statuses[status] += 1
            # Who asks again at once is not listened to for a second; what is told here is how long a client waits who has rested.
            if status == "503" and not client.was_refused:
                refused.append(time.monotonic() - client.began)
            client.was_refused = status == "503"
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
    _run(int(sys.argv[1]), int(sys.argv[2]))
