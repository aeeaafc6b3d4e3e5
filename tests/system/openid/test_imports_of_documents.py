"""Documents of clients that are off are not imported."""

import socket
import subprocess
import sys
from urllib.parse import urlsplit

import pytest

from tests.openid.test_documents import TRANSACTIONS, Web, asked
from tests.support.documents import HOST
from tests.support.http_target import HttpTarget
from tests.support.pages import Visitor
from tests.support.smtp_server import Certificate


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
                web.transactions.append(database.value(TRANSACTIONS))
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


def test_documents_are_off_by_default_and_not_imported(web, client, alice, app):
    assert asked(Visitor(app).with_session_of(alice)).status == 400
    metadata = client.get("/.well-known/oauth-authorization-server").json
    assert (web.looked_up, "client_id_metadata_document_supported" in metadata) == ([], False)
    code = "import sys, auth.web.application, auth.openid.api.authorization; print('auth.openid.documents.fetched' in sys.modules)"
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert found.stdout == "False\n"
