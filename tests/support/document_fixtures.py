"""Fixtures of the tests of clients' documents, which load this module as a plugin."""

import json
import socket
from urllib.parse import urlsplit

import pytest

from tests.support.documents import DOCUMENT, HOST, PUBLIC_ADDRESS
from tests.support.http_target import HttpTarget
from tests.support.pages import Visitor
from tests.support.smtp_server import Certificate

_TRANSACTIONS = (
    "SELECT count(*) FROM pg_stat_activity"
    " WHERE datname = current_database() AND state LIKE 'idle in transaction%%'"
)


class Web:
    """A name server, and the network behind it: connections to a public address reach the server."""

    def __init__(self, target: HttpTarget) -> None:
        self.target, self.addresses = target, [PUBLIC_ADDRESS]
        self.looked_up: list[str] = []
        self.connected: list[tuple[str, int]] = []
        self.transactions: list[int] = []
        self.serve(DOCUMENT)

    def serve(self, document: object, **headers: str) -> None:
        self.target.headers = {"Content-Type": "application/json", **headers}
        self.target.body = document if isinstance(document, bytes) else json.dumps(document).encode()

    @property
    def fetches(self) -> int:
        return len(self.target.requests)


@pytest.fixture
def web(monkeypatch, tmp_path, database):
    certificate = Certificate(tmp_path, HOST)
    really_find, really_connect = socket.getaddrinfo, socket.socket.connect
    with HttpTarget(certificate) as target, certificate.trusted(monkeypatch):
        web, port = Web(target), urlsplit(target.url).port

        def find(host, port, *arguments, **options):
            if not str(host).endswith(".example"):
                return really_find(host, port, *arguments, **options)
            web.looked_up.append(host)
            return [really_find(each, port, *arguments, **options)[0] for each in web.addresses]

        def connect(self, address):
            if isinstance(address, tuple) and address[0] in web.addresses:
                web.connected.append(address[:2])
                web.transactions.append(database.value(_TRANSACTIONS))
                address = ("127.0.0.1", port)
            return really_connect(self, address)

        monkeypatch.setattr(socket, "getaddrinfo", find)
        monkeypatch.setattr(socket.socket, "connect", connect)
        yield web


@pytest.fixture
def application_of(make_app):
    return make_app(AUTH_OAUTH_CLIENT_DOCUMENTS=f"{HOST},other.example")


@pytest.fixture
def visitor(application_of, alice):
    return Visitor(application_of).with_session_of(alice)
