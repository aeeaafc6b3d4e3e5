"""Outgoing HTTP that ends: however slow, large or wayward the other side is.

requests' time-outs are for each read, so that a server which drips would keep a thread for ever. Here
requests share a deadline, an answer has a greatest size, no proxy or credential comes out of the environment,
and redirects are never followed: what was sent may be a credential.
"""

import logging
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from socket import socket
from typing import Any

import requests
from requests.adapters import HTTPAdapter
from urllib3.connection import HTTPConnection, HTTPSConnection
from urllib3.connectionpool import HTTPConnectionPool, HTTPSConnectionPool

from auth.net.sockets import Deadline, tls

# Seconds: for all requests of one purpose together, and to connect to one address.
DEADLINE = 8.0
_CONNECT_TIMEOUT = 4
MAX_BODY = 1024 * 1024

# Its warnings quote URLs, which may hold secrets.
logging.getLogger("urllib3").setLevel(logging.ERROR)

_deadline: ContextVar[Deadline] = ContextVar("deadline")


@contextmanager
def one_deadline(
    seconds: float = DEADLINE, allows: Callable[[str], bool] | None = None
) -> Iterator[Deadline]:
    """Give all requests that are made in here, one after another, the same end, and the addresses that they
    may connect to.

    Bounded sessions work nowhere else.
    """
    with Deadline(seconds, allows) as deadline:
        token = _deadline.set(deadline)
        try:
            yield deadline
        finally:
            _deadline.reset(token)


def bound(session: requests.Session) -> None:
    """Have a session connect so that the deadline ends its connections; it verifies servers as mail does."""
    session.trust_env = False
    session.mount("http://", _Adapter())
    session.mount("https://", _Adapter())


class BoundedMixin:
    """A requests session whose answers are whole, in time and of bounded size, or an exception."""

    def request(self, method: str, url: str, **options: Any) -> requests.Response:
        """Send a request. Raises `requests.RequestException`."""
        deadline = _deadline.get()
        options |= {"allow_redirects": False, "stream": True, "timeout": deadline.seconds}
        response: requests.Response = super().request(method, url, **options)  # type: ignore[misc]
        body = b""
        for chunk in response.iter_content(65_536):
            body += chunk
            if len(body) > MAX_BODY:
                response.close()
                raise requests.exceptions.ContentDecodingError("the answer is too large")
        # What has come by then may be a part of the head, or of the body.
        if deadline.has_passed:
            raise requests.Timeout("not done in time")
        response._content, response._content_consumed = body, True  # type: ignore[attr-defined]
        return response


class BoundedSession(BoundedMixin, requests.Session):  # type: ignore[misc]
    """A plain session, bounded."""

    def __init__(self) -> None:
        super().__init__()
        bound(self)


class _Adapter(HTTPAdapter):
    def init_poolmanager(self, *args: Any, **options: Any) -> None:
        super().init_poolmanager(*args, **options, ssl_context=tls())
        self.poolmanager.pool_classes_by_scheme = {"http": _Pool, "https": _TlsPool}


class _Connection(HTTPConnection):
    def _new_conn(self) -> socket:
        return _deadline.get().connect(self.host, self.port or 80, _CONNECT_TIMEOUT)


class _TlsConnection(HTTPSConnection):
    def _new_conn(self) -> socket:
        return _deadline.get().connect(self.host, self.port or 443, _CONNECT_TIMEOUT)


class _Pool(HTTPConnectionPool):
    ConnectionCls = _Connection


class _TlsPool(HTTPSConnectionPool):
    ConnectionCls = _TlsConnection
