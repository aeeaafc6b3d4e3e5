"""Outgoing HTTP that ends: however slow, large or wayward the other side is.

requests' time-outs are for each read, so that a server which drips keeps a thread for ever. Here a request has a deadline for all
of it, an answer a greatest size, and redirects are never followed: what was sent may be a credential.
"""

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

import requests
import urllib3
from requests.adapters import HTTPAdapter

# Seconds, and bytes.
DEADLINE = 8.0
MAX_BODY = 1024 * 1024


_common_deadline: ContextVar[float | None] = ContextVar("deadline", default=None)


@contextmanager
def one_deadline(seconds: float = DEADLINE) -> Iterator[None]:
    """Give all sessions that are made in here, one after another, the same end."""
    token = _common_deadline.set(time.monotonic() + seconds)
    try:
        yield
    finally:
        _common_deadline.reset(token)


class _Watched:
    """A connection whose socket is shut down at the deadline: whoever reads from it finds it at its end."""

    deadline: float
    _timer: threading.Timer | None = None

    def _new_conn(self) -> Any:
        socket = super()._new_conn()  # type: ignore[misc]
        self._watch(socket)
        return socket

    def connect(self) -> None:
        super().connect()  # type: ignore[misc]
        # TLS has put another socket object in the place of the first.
        self._watch(self.sock)  # type: ignore[attr-defined]

    def close(self) -> None:
        if self._timer:
            self._timer.cancel()
        super().close()  # type: ignore[misc]

    def _watch(self, socket: Any) -> None:
        if self._timer:
            self._timer.cancel()
        self._timer = threading.Timer(max(0.0, type(self).deadline - time.monotonic()), _shut_down, [socket])
        self._timer.daemon = True
        self._timer.start()


def _shut_down(socket: Any) -> None:
    try:
        socket.shutdown(2)
    except OSError:
        return  # closed already


class _Adapter(HTTPAdapter):
    """Makes connections that are watched until one deadline."""

    def __init__(self, deadline: float) -> None:
        self._deadline = deadline
        super().__init__()

    def init_poolmanager(self, *args: Any, **kwargs: Any) -> None:
        super().init_poolmanager(*args, **kwargs)
        deadline = {"deadline": self._deadline}
        http = type("HTTPConnection", (_Watched, urllib3.connection.HTTPConnection), deadline)
        https = type("HTTPSConnection", (_Watched, urllib3.connection.HTTPSConnection), deadline)
        self.poolmanager.pool_classes_by_scheme = {
            "http": type("HTTPPool", (urllib3.HTTPConnectionPool,), {"ConnectionCls": http}),
            "https": type("HTTPSPool", (urllib3.HTTPSConnectionPool,), {"ConnectionCls": https}),
        }


class BoundedMixin:
    """A requests session, all of whose requests together end `DEADLINE` seconds after it was made, or with `one_deadline`."""

    def bound(self) -> None:
        """Begin the time that there is."""
        session: Any = self
        # No proxies and no credentials out of the environment.
        session.trust_env = False
        self._deadline = _common_deadline.get() or time.monotonic() + DEADLINE
        session.mount("http://", _Adapter(self._deadline))
        session.mount("https://", _Adapter(self._deadline))

    def request(self, method: str, url: str, **kwargs: Any) -> requests.Response:
        """Send a request; the whole answer is there, and no redirect was followed. Raises `requests.RequestException`."""
        left = self._deadline - time.monotonic()
        if left <= 0:
            raise requests.Timeout("no time left")
        kwargs |= {"allow_redirects": False, "stream": True, "timeout": left}
        response = super().request(method, url, **kwargs)  # type: ignore[misc]
        body = b""
        for chunk in response.iter_content(65_536):
            body += chunk
            if len(body) > MAX_BODY:
                response.close()
                raise requests.exceptions.ContentDecodingError("the answer is too large")
        response._content = body
        response._content_consumed = True
        return response


class BoundedSession(BoundedMixin, requests.Session):  # type: ignore[misc]
    """A plain session, bounded."""

    def __init__(self) -> None:
        super().__init__()
        self.bound()
