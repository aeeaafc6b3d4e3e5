"""Bounds of answers to outgoing HTTP. tests/system/faults/test_hostile_answers.py plays hostile answers against a worker."""

import gzip
import json
import socket

import pytest
import requests

from auth.core.net.bounded_http import BoundedSession
from auth.core.net.sockets import MOST_BYTES, AddressRefused, Deadline, why
from tests.support.awake import awake
from tests.support.cases import cases
from tests.support.hostile_server import ANSWERS, HostileServer, drip, whole
from tests.support.smtp_server import Certificate

# Bytes that leave room for a head, and for TLS.
NEARLY_MOST = MOST_BYTES - 8192


@pytest.fixture(scope="module")
def certificate(tmp_path_factory):
    return Certificate(tmp_path_factory.mktemp("tls"))


@pytest.fixture(params=["http", "https"])
def server(request, certificate, monkeypatch):
    with (
        HostileServer(certificate.server_context if request.param == "https" else None) as server,
        certificate.trusted(monkeypatch),
    ):
        yield server


def ask(server, answer, seconds=60.0):
    server.answers["/"] = answer
    with Deadline(seconds), BoundedSession() as session:
        return session.get(server.url)


def test_answer_of_nearly_the_limit_is_whole(server):
    body = json.dumps(["x" * (NEARLY_MOST - 4)]).encode()
    assert ask(server, whole(body)).content == body


def test_answer_above_the_limit_is_refused_and_the_reason_said(server):
    with pytest.raises(requests.RequestException) as raised:
        ask(server, whole(b" " * MOST_BYTES))
    assert why(raised.value) == "its answer is too large"


def test_each_of_many_answers_in_a_connection_may_have_the_limit(server):
    server.answers["/"] = whole(b" " * NEARLY_MOST)
    with Deadline(60), BoundedSession() as session:
        assert {len(session.get(server.url).content) for _ in range(3)} == {NEARLY_MOST}


@cases(
    "name",
    ["interim responses", "trailers", "chunks of one byte", "headers", "a body", "packets of one byte"],
)
def test_answer_without_an_end_is_left_long_before_the_deadline(server, name):
    start = awake()
    with pytest.raises(requests.RequestException):
        ask(server, ANSWERS[name])
    assert awake() - start < 20


def test_answer_that_is_cut_off_by_the_deadline_does_not_count(server):
    def slow():
        yield from whole(b"{}")()
        yield from drip()

    with pytest.raises(requests.RequestException) as raised:
        ask(server, slow, 0.5)
    assert why(raised.value) == "no answer in time"


def test_compressed_answer_is_refused_unless_its_reader_takes_bytes(server):
    compressed = whole(gzip.compress(b"{}"), "application/json\r\nContent-Encoding: gzip")
    with pytest.raises(requests.exceptions.ContentDecodingError):
        ask(server, compressed)
    with Deadline(60), BoundedSession() as session, session.get(server.url, stream=True) as response:
        assert response.status_code == 200


def test_few_of_the_thousands_of_addresses_of_a_name_are_tried(monkeypatch):
    family = (socket.AF_INET, socket.SOCK_STREAM, 0, "")
    tried: list[str] = []

    def allows(address: str) -> bool:
        tried.append(address)
        return False

    monkeypatch.setattr(socket, "getaddrinfo", lambda *_: [(*family, ("192.0.2.7", 9))] * 4000)
    with Deadline(60, allows) as deadline, pytest.raises(AddressRefused):
        deadline.connect("many.example", 9, 1.0)
    assert len(tried) == 16


@cases("charset", ["punycode", "idna", "utf-7", "iso-8859-1", "no-such-encoding"])
def test_json_is_utf_8_whatever_its_type_says(server, charset):
    answer = ask(server, whole('\ufeff"ä"'.encode(), f"application/json; charset={charset}"))
    assert answer.json() == "ä"
