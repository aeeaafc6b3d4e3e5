"""Connections between responses, and those that send nothing."""

import pytest

from tests.support.processes import Service
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
        second_response = client.recv(65536)
    assert second_response.startswith(b"HTTP/1.1 200 " if connection == "keep-alive" else b"")
    assert bool(second_response) == (connection == "keep-alive")


def test_connection_closes_over_a_body_of_unknown_length(port):
    head = b"POST /recover HTTP/1.1\r\n" + HOST + b"Transfer-Encoding: chunked\r\n\r\n"
    with connect(port, head + b"2\r\n{}\r\n0\r\n\r\n") as client:
        received = b"".join(iter(lambda: client.recv(65536), b""))
    assert b"\r\nconnection: close\r\n" in received.lower()
