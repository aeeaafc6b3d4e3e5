"""Outgoing HTTP within a deadline, without redirects and proxies: requests may carry credentials."""

from http import HTTPStatus
from http.client import HTTPResponse
from socket import socket
from typing import Any

import requests
from requests.adapters import HTTPAdapter
from urllib3.connection import HTTPConnection, HTTPSConnection
from urllib3.connectionpool import HTTPConnectionPool, HTTPSConnectionPool
from urllib3.exceptions import NewConnectionError

from auth.core.net.sockets import Deadline, tls

_CONNECT_TIMEOUT = 4  # seconds for one address


class BoundedSession(requests.Session):
    """A session whose requests end with the current `Deadline`."""

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        self.trust_env = False
        # A compressed response can have gigabytes in a few bytes, or no byte in gigabytes.
        self.headers["Accept-Encoding"] = "identity"
        adapter = HTTPAdapter()
        adapter.init_poolmanager(1, 1, ssl_context=tls())
        adapter.poolmanager.pool_classes_by_scheme = {"http": _BoundedPool, "https": _TlsPool}
        for scheme in ("http://", "https://"):
            self.mount(scheme, adapter)

    def request(  # type: ignore[override]
        self, method: str, url: str, *, stream: bool = False, **options: Any
    ) -> requests.Response:
        """Return a whole response, or with `stream` its head. Raises `requests.RequestException`."""
        deadline = Deadline.current.get()
        deadline.expect_answer()
        options |= {"allow_redirects": False, "stream": True, "timeout": deadline.seconds}
        response = super().request(method, url, **options)
        # JSON is UTF-8 (RFC 8259). The server may name an encoding that is slow to decode, such as Punycode.
        response.encoding = "utf-8-sig"
        if not stream:
            if "Content-Encoding" in response.headers:
                response.close()
                raise requests.exceptions.ContentDecodingError("the response is compressed")
            response.content  # noqa: B018 # reads it, within the deadline
        return response

    def get_redirect_target(self, resp: requests.Response) -> None:
        """Follow no redirect: `requests` would read its whole body, however large."""


class _FinalResponse(HTTPResponse):
    """Skips interim responses, such as 103 Early Hints, of which http.client skips 100 alone."""

    def begin(self) -> None:
        super().begin()
        while 100 <= self.status < 200 and self.status != HTTPStatus.SWITCHING_PROTOCOLS:
            self.headers = None  # type: ignore[assignment] # to read the next one
            super().begin()


class _BoundedConnection(HTTPConnection):
    response_class = _FinalResponse

    def _new_conn(self) -> socket:
        try:
            return Deadline.current.get().connect(self.host, self.port, _CONNECT_TIMEOUT)
        except OSError as error:
            # urllib3 takes a bare ECONNRESET for a reset of the request, and reads from the missing socket.
            raise NewConnectionError(self, str(error)) from error


class _TlsConnection(_BoundedConnection, HTTPSConnection):
    pass


class _BoundedPool(HTTPConnectionPool):
    ConnectionCls = _BoundedConnection


class _TlsPool(HTTPSConnectionPool):
    ConnectionCls = _TlsConnection
