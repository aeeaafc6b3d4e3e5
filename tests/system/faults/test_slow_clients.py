"""Slow clients cost a greenlet and a descriptor: they delay no other client and no end of a process, and their
requests have a deadline.
"""

import selectors
import signal
import socket
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack, suppress

import pytest

from tests.support.awake import awake
from tests.support.processes import Service, UnfinishedRequest, children_of, wait_until
from tests.support.raw_http import HOST, connect

HEAD = b"POST /login-admin HTTP/1.1\r\n" + HOST + b"Content-Type: application/json\r\n"
SETTINGS_REQUEST = b"GET /settings HTTP/1.1\r\n" + HOST + b"\r\n"
SLOW = {
    "half a word": b"PO",
    "half a head": HEAD,
    "a head whose last line is missing": HEAD + b"Content-Length: 100\r\n",
    "no body": HEAD + b"Content-Length: 100\r\n\r\n",
    "half a body": HEAD + b'Content-Length: 100\r\n\r\n{"email": "',
    "half a large body": HEAD + b"Content-Length: 200000\r\n\r\n" + b" " * 100_000,
    "a body that is expected": HEAD + b"Content-Length: 100\r\nExpect: 100-continue\r\n\r\n",
    "half a chunk": HEAD + b'Transfer-Encoding: chunked\r\n\r\n50\r\n{"email": "',
    "a chunk without the next": HEAD + b"Transfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n",
    "half a body that no view reads": b"GET /settings HTTP/1.1\r\n"
    + HOST
    + b"Content-Length: 100\r\n\r\nhalf",
    "responses that are not read": (b"GET /openapi.yaml HTTP/1.1\r\n" + HOST + b"\r\n") * 20,
}
# More connections than a pool of threads would serve.
MANY_CONNECTIONS = 140


# Seconds after which gunicorn kills a process that has not ended.
GRACE = 8


@pytest.fixture(scope="module")
def service(serve) -> Iterator[Service]:
    """gunicorn with one worker."""
    with serve(AUTH_WORKERS="1") as (service, _):
        yield service


@pytest.fixture
def opened() -> Iterator[ExitStack]:
    """Closes connections at the end of the test."""
    with ExitStack() as stack:
        yield stack


def connect_slowly(service: Service, data: bytes) -> socket.socket:
    """Connect and send as much as the service takes, without reading."""
    connection = socket.socket()
    # A small buffer, so that unread responses fill it soon.
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    connection.settimeout(15)
    connection.connect(("127.0.0.1", service.port))
    connection.setblocking(False)
    try:
        connection.send(data)
    finally:
        connection.settimeout(15)
    return connection


def all_are_closed(connections: list[socket.socket], seconds: float) -> bool:
    """Return whether the service closes all connections within some seconds, while reading its responses."""
    deadline, waiting = awake() + seconds, set(connections)
    with selectors.DefaultSelector() as selector:
        for connection in connections:
            selector.register(connection, selectors.EVENT_READ, connection)
        while waiting and awake() < deadline:
            for key, _ in selector.select(deadline - awake()):
                try:
                    data = key.data.recv(65536)
                except ConnectionError:
                    data = b""
                if not data:
                    selector.unregister(key.data)
                    waiting.discard(key.data)
    return not waiting


def test_slow_clients_do_not_keep_others_waiting(service, opened):
    for data in (b"", *SLOW.values()):
        for _ in range(MANY_CONNECTIONS):
            opened.enter_context(connect_slowly(service, data))
        # Wait until the service has accepted all connections and filled their buffers: not for the deadline of
        # the slow requests, which is thirty seconds.
        wait_until(lambda: all(service.get("/health", timeout=25)[0] == 200 for _ in range(10)))
        opened.pop_all().close()


@pytest.fixture(scope="module")
def short_deadline(serve) -> Iterator[Service]:
    """A service that gives a request three seconds to arrive and be answered."""
    command = f"{sys.executable} -m gunicorn --config tests/support/short_deadline.conf.py wsgi:app"
    with serve(command=command.split(), AUTH_WORKERS="1") as (service, _):
        yield service


class TestDeadline:
    def test_deadline_ends_every_slow_request_and_no_idle_connection(self, short_deadline, opened):
        idle = [opened.enter_context(connect(short_deadline.port, data)) for data in (b"", SETTINGS_REQUEST)]
        assert idle[1].recv(12) == b"HTTP/1.1 200"
        slow = [opened.enter_context(connect_slowly(short_deadline, data)) for data in SLOW.values()]
        time.sleep(4)  # the deadline is three seconds
        for connection in idle:
            connection.sendall(SETTINGS_REQUEST)
        assert b"HTTP/1.1 200" in idle[0].recv(65536)
        assert all_are_closed(slow, 15)
        assert "unexpected_failure" not in short_deadline.text()
        assert "Traceback" not in short_deadline.text()

    def test_deadline_is_not_extended_by_single_bytes(self, short_deadline, opened):
        connection = opened.enter_context(connect(short_deadline.port, HEAD))
        # The service resets the connection when data arrives after the end.
        started_at = awake()
        while not all_are_closed([connection], 0.1):
            assert awake() - started_at < 10
            with suppress(ConnectionError):
                connection.sendall(b"x")


def test_unfinished_request_delays_a_reload_only_for_the_grace_period(serve):
    with serve(AUTH_WORKERS="1") as (service, _):
        (former,) = children_of(service.process.pid)
        with UnfinishedRequest(service, "/signup"):
            started_at = awake()
            # On a reload gunicorn would wait for an unfinished request thirty seconds.
            service.process.send_signal(signal.SIGHUP)
            wait_until(lambda: former not in children_of(service.process.pid), 25)
            assert awake() - started_at < 2 * GRACE
        service.wait_until_healthy()
