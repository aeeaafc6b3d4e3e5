"""Connections that send nothing, at services with their own settings."""

import socket
from collections.abc import Iterator
from contextlib import ExitStack

import pytest

from tests.support.processes import Service, wait_until
from tests.support.raw_http import connect
from tests.web.test_connections import GET, HEAD


def test_connection_that_waits_for_longer_than_keepalive_is_closed(serve, database):
    with ExitStack() as stack:
        service, _ = stack.enter_context(serve(AUTH_WORKERS="1", GUNICORN_CMD_ARGS="--keep-alive 2"))
        silent, served = (stack.enter_context(connect(service.port, data)) for data in (b"", GET + b"\r\n"))
        assert served.recv(65536).startswith(b"HTTP/1.1 200 ")
        assert (served.recv(1), silent.recv(1)) == (b"", b"")


LIMIT = 10


@pytest.fixture(scope="module")
def small(serve) -> Iterator[Service]:
    """A service with one worker that accepts ten connections."""
    with serve(AUTH_WORKERS="1", GUNICORN_CMD_ARGS=f"--worker-connections {LIMIT}") as (service, _):
        yield service


@pytest.fixture
def opened() -> Iterator[ExitStack]:
    """Closes connections at the end of the test."""
    with ExitStack() as stack:
        yield stack


class TestSilentConnections:
    def is_closed(self, connection: socket.socket) -> bool:
        connection.settimeout(0.05)
        try:
            return connection.recv(1) == b""
        except TimeoutError:
            return False

    def test_silent_connections_beyond_the_limit_are_closed_the_oldest_first(self, small, opened):
        silent = [opened.enter_context(connect(small.port)) for _ in range(3 * LIMIT)]
        assert small.get("/health")[0] == 200
        closed = [self.is_closed(each) for each in silent]
        assert closed == sorted(closed, reverse=True)  # the oldest
        assert (closed[2 * LIMIT], closed[-1]) == (True, False)

    def test_connections_that_have_sent_a_request_stay_open(self, small, opened):
        idle = opened.enter_context(connect(small.port, HEAD + b"\r\n"))
        assert idle.recv(65536).startswith(b"HTTP/1.1 200")
        unfinished = opened.enter_context(connect(small.port, GET))
        for _ in range(3 * LIMIT):
            opened.enter_context(connect(small.port))
        assert small.get("/health")[0] == 200
        idle.sendall(GET + b"\r\n")
        unfinished.sendall(b"\r\n")
        assert [each.recv(12) for each in (idle, unfinished)] == [b"HTTP/1.1 200"] * 2

    def test_silent_connections_up_to_half_of_the_limit_may_wait_for_a_second(self, small, opened):
        first, *other_connections = [opened.enter_context(connect(small.port)) for _ in range(LIMIT // 2)]
        # The first connection is closed a second after it was accepted.
        wait_until(lambda: small.get("/health")[0] == 200 and self.is_closed(first))
        for each in other_connections:
            each.sendall(GET + b"\r\n")
            assert each.recv(12) == b"HTTP/1.1 200"
