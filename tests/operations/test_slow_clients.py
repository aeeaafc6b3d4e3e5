"""Slow clients: silent connections hold no thread, and a request that takes too long to arrive is cut off."""

import selectors
import socket
import time
from collections.abc import Iterator
from contextlib import ExitStack, suppress

import pytest

from auth.connections import MOST_HELD
from tests.support.processes import Service, wait_until
from tests.support.wire import HOST, connect

# Seconds that a request may take to arrive; and what a noisy machine may need beside.
DEADLINE = 10
SLACK = 8
HEAD = b"POST /login-admin HTTP/1.1\r\n" + HOST + b"Content-Type: application/json\r\n"
GOOD = b"GET /settings HTTP/1.1\r\n" + HOST + b"\r\n"
SLOW = {
    "half a word": b"PO",
    "half a head": HEAD,
    "a head whose last line is missing": HEAD + b"Content-Length: 100\r\n",
    "no body": HEAD + b"Content-Length: 100\r\n\r\n",
    "half a body": HEAD + b'Content-Length: 100\r\n\r\n{"email": "',
    "half a chunk": HEAD + b'Transfer-Encoding: chunked\r\n\r\n50\r\n{"email": "',
    "a chunk without the next": HEAD + b"Transfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n",
    "half a body that nobody reads": b"GET /settings HTTP/1.1\r\n" + HOST + b"Content-Length: 100\r\n\r\nhalf",
}


@pytest.fixture
def service(small_service: Service) -> Service:
    """One worker of four threads."""
    return small_service


@pytest.fixture
def open_connection(service) -> Iterator:
    """Open connections that are closed at the end."""
    with ExitStack() as opened:
        yield lambda sent=b"": opened.enter_context(connect(service.port, sent))


def answers(service: Service, seconds: float = 30) -> float:
    """Return after how many seconds somebody else is answered."""
    began = time.monotonic()
    assert service.get("/settings", timeout=seconds)[0] == 200
    return time.monotonic() - began


def all_are_closed(connections: list[socket.socket], seconds: float) -> bool:
    """Whether the server has closed all connections, at the latest after so many seconds; what it sends is read."""
    deadline, waiting = time.monotonic() + seconds, set(connections)
    with selectors.DefaultSelector() as selector:
        for connection in connections:
            selector.register(connection, selectors.EVENT_READ)
        while waiting and time.monotonic() < deadline:
            for key, _ in selector.select(deadline - time.monotonic()):
                try:
                    data = key.fileobj.recv(65536)  # type: ignore[union-attr]
                except ConnectionError:
                    data = b""
                if not data:
                    selector.unregister(key.fileobj)
                    waiting.discard(key.fileobj)
    return not waiting


def test_silent_connections_hold_no_thread(service, open_connection):
    for _ in range(50):
        open_connection()
    assert answers(service) < 5


def test_connections_that_are_kept_alive_hold_no_thread(service, open_connection):
    for _ in range(20):
        assert open_connection(GOOD).recv(12) == b"HTTP/1.1 200"
    assert answers(service) < 5


def test_a_request_in_two_halves_is_served(service, open_connection):
    connection = open_connection(GOOD[:10])
    assert answers(service) < 5
    connection.sendall(GOOD[10:])
    assert connection.recv(12) == b"HTTP/1.1 200"


def test_what_is_unfinished_takes_so_much_memory_and_no_more(service, open_connection):
    unfinished = HEAD + b"Content-Length: 65000\r\n\r\n" + b"x" * 64_000
    for _ in range(MOST_HELD // len(unfinished)):
        open_connection(unfinished)
    too_many = [open_connection(unfinished) for _ in range(10)]

    assert too_many[-1].recv(12) == b"HTTP/1.1 400"
    assert answers(service) < 5


def test_who_goes_on_slowly_and_who_does_not_read_is_cut_off_and_others_are_served(service, open_connection):
    # Far more than there are threads. All of them began at the same time, so all of them are over at the same time.
    kept = open_connection(GOOD)
    answer = b""
    while not answer.endswith(b"}"):
        answer += kept.recv(65536)
    began = time.monotonic()
    silent = [open_connection() for _ in range(10)]
    slow = [open_connection(sent) for sent in SLOW.values() for _ in range(2)]
    dripping = [open_connection(HEAD), open_connection(HEAD + b"Content-Length: 100\r\n\r\n")]

    def is_served() -> bool:
        for connection in dripping:
            with suppress(OSError):  # cut off by now
                connection.send(b"x")
        with socket.create_connection(("127.0.0.1", service.port), timeout=15) as other:
            other.settimeout(0.5)
            other.sendall(GOOD)
            try:
                return other.recv(12) == b"HTTP/1.1 200"
            except OSError:
                return False

    wait_until(is_served, DEADLINE + SLACK)
    assert all_are_closed([*slow, *dripping, *silent], began + DEADLINE + SLACK - time.monotonic())
    kept.sendall(GOOD)
    assert kept.recv(12) == b"HTTP/1.1 200"
    assert "unexpected_failure" not in service.text()
    assert "Traceback" not in service.text()


def test_afterwards_nothing_is_missing(service, open_connection):
    # As many at once as there are threads.
    connections = [open_connection(GOOD) for _ in range(4)]
    assert {connection.recv(12) for connection in connections} == {b"HTTP/1.1 200"}
    assert answers(service) < 5


def test_who_does_not_close_when_it_is_told_to_holds_up_nobody(service, open_connection):
    staying = [open_connection(GOOD[:-2] + b"Connection: close\r\n\r\n") for _ in range(20)]
    assert {connection.recv(12) for connection in staying} == {b"HTTP/1.1 200"}
    assert answers(service) < 1
    assert all_are_closed(staying, SLACK)
