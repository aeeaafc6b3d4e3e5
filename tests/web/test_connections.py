"""Connections between responses, and those that send nothing."""

import re
from urllib.parse import urlencode

import httpx
import pytest

from tests.support.environment import BASE_URL
from tests.support.processes import Service
from tests.support.raw_http import HOST, connect, exchange
from tests.support.users import PASSWORD

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


def test_cookies_of_several_headers_are_those_of_one(port, alice):
    """Proxies that speak HTTP/2 to browsers may pass them on so."""
    with httpx.Client(base_url=f"http://127.0.0.1:{port}", trust_env=False) as browser:
        page = browser.get("/sign-in", headers={"Host": "localhost:8000"})
    (cookie,) = [header.partition(";")[0] for header in page.headers.get_list("Set-Cookie")]
    token, *_ = re.findall(r'name="form_token"[^>]*value="([^"]+)"', page.text)
    body = urlencode({"form_token": token, "email": alice.email, "password": PASSWORD}).encode()
    fixed = f"Origin: {BASE_URL}\r\nContent-Type: application/x-www-form-urlencoded\r\n"
    head = f"POST /sign-in HTTP/1.1\r\nHost: localhost:8000\r\n{fixed}Connection: close\r\n"
    rest = f"Content-Length: {len(body)}\r\n\r\n".encode() + body
    for cookies in ([cookie, "other=1; more=2"], ["other=1", "more=2", cookie]):
        headers = "".join(f"Cookie: {each}\r\n" for each in cookies)
        (reply,) = exchange(port, head.encode() + headers.encode() + rest)
        assert (reply.status, reply.headers["Location"]) == (303, f"{BASE_URL}/account")
