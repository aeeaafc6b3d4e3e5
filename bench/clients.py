"""The process of the load generator, which `bench.load` starts: clients in a closed loop.

Each client sends its next request after the response. One loop over sockets with prepared requests takes a
twentieth of the service's own time for a request.
"""

import heapq
import json
import math
import re
import selectors
import socket
import sys
import time
from collections import defaultdict, deque
from dataclasses import dataclass
from itertools import count

_LENGTH = re.compile(rb"\r\ncontent-length: (\d+)", re.IGNORECASE)
# In JSON, or in a form.
_TOKEN = re.compile(rb'\brefresh_token(?:":\s*"|=)([\w-]+)')
LOST = "lost"  # instead of a status
_AFTER_LOSS = 0.05  # seconds until the client connects again


@dataclass(eq=False)
class Client:
    """A connection from one of this machine's addresses, with the request that it waits for."""

    port: int
    address: str
    began: float = 0.0
    request: bytes = b""
    answer: bytes = b""
    connection: socket.socket | None = None

    def send(self, request: bytes) -> None:
        assert self.connection
        self.request, self.answer, self.began = request, b"", time.monotonic()
        self.connection.sendall(request)

    def receive(self) -> str | None:
        """Return the status when the response is complete."""
        assert self.connection
        try:
            received = self.connection.recv(262_144)
        except OSError:
            received = b""
        self.answer += received
        head, end, body = self.answer.partition(b"\r\n\r\n")
        if end:
            length = _LENGTH.search(head)
            if len(body) >= (int(length[1]) if length else 0):
                return head[9:12].decode()
        return None if received else LOST


def loopback(number: int) -> str:
    """Return one of 63,000 loopback addresses."""
    return f"127.0.{1 + number // 250}.{1 + number % 250}"


def _renewed(request: bytes, answer: bytes) -> bytes:
    """Return the request with the refresh token of its response, which is as long."""
    old, new = _TOKEN.search(request), _TOKEN.search(answer)
    return request.replace(old[1], new[1]) if old and new else request


class Loop:
    """Sends the requests in turn: `number` of them, or until standard input is closed. `milliseconds` are by status."""

    def __init__(
        self, port: int, number: int, connections: int, pause: float, addresses: int, renews: bool
    ) -> None:
        self.milliseconds: dict[str, list[float]] = defaultdict(list)
        self._left = number or math.inf
        self._unanswered: set[Client] = set()
        self._clients = [Client(port, loopback(number % addresses)) for number in range(connections)]
        self._pause, self._renews = pause, renews
        self._selector = selectors.DefaultSelector()
        # Requests to be sent later: when, a number that no two have, and the client.
        self._later: list[tuple[float, int, Client]] = []
        self._numbers = count()

    def run(self, requests: list[bytes]) -> float:
        """Return for how many seconds the requests were sent."""
        self.requests = deque(requests)
        for client in self._clients:
            self._connect(client)
        print("connected", flush=True)
        sys.stdin.readline()  # until all may start
        self._selector.register(sys.stdin, selectors.EVENT_READ)
        began = time.monotonic()
        for client in self._clients:
            if client.connection:
                self._send(client)
        while self._left or self._unanswered:
            for key, _ in self._selector.select(self._wait()):
                if not key.data:
                    return time.monotonic() - began
                self._receive(key.data)
            self._send_what_is_due()
        return time.monotonic() - began

    def _wait(self) -> float | None:
        return max(0.0, self._later[0][0] - time.monotonic()) if self._later else None

    def _send_what_is_due(self) -> None:
        while self._later and self._later[0][0] <= time.monotonic():
            _, _, client = heapq.heappop(self._later)
            if client.connection or self._connect(client):
                self._send(client)

    def _connect(self, client: Client) -> bool:
        try:
            connection = socket.create_connection(("127.0.0.1", client.port), 30, (client.address, 0))
        except OSError:
            self._lose(client)
            return False
        client.connection = connection
        self._selector.register(connection, selectors.EVENT_READ, client)
        return True

    def _send(self, client: Client) -> None:
        if not self._left:
            return
        try:
            client.send(self.requests.popleft())
        except OSError:
            self.requests.append(client.request)
            self._lose(client)
        else:
            self._left -= 1
            self._unanswered.add(client)

    def _receive(self, client: Client) -> None:
        if (status := client.receive()) is None:
            return
        self._unanswered.discard(client)
        self.requests.append(_renewed(client.request, client.answer) if self._renews else client.request)
        if status == LOST:
            self._lose(client)
            return
        self.milliseconds[status].append((time.monotonic() - client.began) * 1000)
        if b"\r\nConnection: close\r\n" in client.answer:
            self._close(client)
            self._send_later(client, self._pause)
        elif self._pause:
            self._send_later(client, self._pause)
        else:
            self._send(client)

    def _lose(self, client: Client) -> None:
        self.milliseconds[LOST].append(0.0)
        self._close(client)
        self._send_later(client, _AFTER_LOSS)

    def _close(self, client: Client) -> None:
        if client.connection:
            self._selector.unregister(client.connection)
            client.connection.close()
            client.connection = None

    def _send_later(self, client: Client, seconds: float) -> None:
        heapq.heappush(self._later, (time.monotonic() + seconds, next(self._numbers), client))


def main() -> None:
    job = json.loads(sys.stdin.readline())
    requests = [request.encode() for request in job.pop("requests")]
    loop = Loop(**job)
    seconds = loop.run(requests)
    left = [request.decode() for request in loop.requests]
    print(json.dumps({"milliseconds": loop.milliseconds, "seconds": seconds, "requests_left": left}))


if __name__ == "__main__":
    main()
