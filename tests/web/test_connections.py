"""Connections between responses, and those that send nothing."""

import socket
from collections.abc import Iterator
from contextlib import ExitStack

import pytest

from tests.support.processes import Service, wait_until
from tests.support.raw_http import HOST, connect

HEAD = b"HEAD /health HTTP/1.1\r\n" + HOST
GET = b"GET /health HTTP/1.1\r\n" + HOST


@pytest.fixture
def port(running_service: Service, database) -> int:
    return running_service.port


def test_response_without_a_body_is_sent_before_the_next_request(port):
    with connect(port, HEAD + b"\r\n") as connection:
        first = connection.recv(65536)
        connection.sendall(GET + b"Connection: close\r\n\r\n")
        rest = b"".join(iter(lambda: connection.recv(65536), b""))
    assert first.startswith(b"HTTP/1.1 200 ")
    assert first.endswith(b"\r\n\r\n")
    assert rest.startswith(b"HTTP/1.1 200 ")
    assert rest.endswith(b"}")


def test_response_without_a_body_is_sent_before_the_connection_ends(port):
    with connect(port, HEAD + b"Connection: close\r\n\r\n") as connection:
        received = b"".join(iter(lambda: connection.recv(65536), b""))
    assert received.startswith(b"HTTP/1.1 200 ")
    assert received.endswith(b"\r\n\r\n")


def test_pipelined_requests_get_one_response_each_in_order(port):
    with connect(port, HEAD + b"\r\n" + GET + b"\r\n" + HEAD + b"Connection: close\r\n\r\n") as connection:
        received = b"".join(iter(lambda: connection.recv(65536), b""))
    heads = received.split(b"HTTP/1.1 200 OK\r\n")[1:]
    assert [head.partition(b"\r\n\r\n")[2] != b"" for head in heads] == [False, True, False]


@pytest.mark.parametrize(
    ("length", "status", "connection"),
    [
        (100, 400, "keep-alive"),
        (20_000, 413, "keep-alive"),
        (65_536, 413, "close"),
        (10_000_000, 413, "close"),
    ],
)
def test_response_says_whether_the_connection_closes_over_a_body_that_is_not_read(
    port, length, status, connection
):
    """A proxy would send another user's request on a connection that is about to close."""
    head = b"POST /recover HTTP/1.1\r\n" + HOST + b"Content-Type: application/json\r\n"
    with connect(port, head + b"Content-Length: %d\r\n\r\n" % length + b"x" * min(length, 65_536)) as client:
        received = client.recv(65536).decode().lower()
        assert received.startswith(f"http/1.1 {status} ")
        assert f"\r\nconnection: {connection}\r\n" in received
        client.sendall(GET + b"\r\n")
        again = client.recv(65536)
    assert again.startswith(b"HTTP/1.1 200 " if connection == "keep-alive" else b"")
    assert bool(again) == (connection == "keep-alive")


def test_connection_closes_over_a_body_of_unknown_length(port):
    head = b"POST /recover HTTP/1.1\r\n" + HOST + b"Transfer-Encoding: chunked\r\n\r\n"
    with connect(port, head + b"2\r\n{}\r\n0\r\n\r\n") as client:
        received = b"".join(iter(lambda: client.recv(65536), b""))
    assert b"\r\nconnection: close\r\n" in received.lower()


def test_connection_that_waits_for_longer_than_keepalive_is_closed(serve, database):
    with ExitStack() as stack:
        service, _ = stack.enter_context(serve(AUTH_WORKERS="1", GUNICORN_CMD_ARGS="--keep-alive 2"))
        silent, served = (stack.enter_context(connect(service.port, sent)) for sent in (b"", GET + b"\r\n"))
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

    def test_they_do_not_keep_others_waiting(self, small, opened):
        silent = [opened.enter_context(connect(small.port)) for _ in range(3 * LIMIT)]
        assert small.get("/health")[0] == 200
        closed = [self.is_closed(each) for each in silent]
        assert closed == sorted(closed, reverse=True)  # the oldest
        assert (closed[2 * LIMIT], closed[-1]) == (True, False)

    def test_others_stay(self, small, opened):
        idle = opened.enter_context(connect(small.port, HEAD + b"\r\n"))
        assert idle.recv(65536).startswith(b"HTTP/1.1 200")
        begun = opened.enter_context(connect(small.port, GET))
        for _ in range(3 * LIMIT):
            opened.enter_context(connect(small.port))
        assert small.get("/health")[0] == 200
        idle.sendall(GET + b"\r\n")
        begun.sendall(b"\r\n")
        assert [each.recv(12) for each in (idle, begun)] == [b"HTTP/1.1 200"] * 2

    def test_half_of_the_limit_may_wait(self, small, opened):
        first, *others = [opened.enter_context(connect(small.port)) for _ in range(LIMIT // 2)]
        # A second after it was accepted.
        wait_until(lambda: small.get("/health")[0] == 200 and self.is_closed(first))
        for each in others:
            each.sendall(GET + b"\r\n")
            assert each.recv(12) == b"HTTP/1.1 200"
