"""Connections between responses: the worker sends a response's head together with its body."""

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
