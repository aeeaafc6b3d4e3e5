"""Requests to others: bounded in time and size, never redirected, by no proxy that the environment names."""

import contextlib
import logging
from collections.abc import Mapping
from contextvars import ContextVar
from dataclasses import dataclass
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from socket import socket
from typing import Any

import requests
from requests.adapters import HTTPAdapter
from urllib3.connection import HTTPConnection, HTTPSConnection
from urllib3.connectionpool import HTTPConnectionPool, HTTPSConnectionPool
from urllib3.exceptions import HTTPError

from auth.delivery.senders import TryLater
from auth.delivery.sockets import Deadline, tls, why

# Seconds: to connect to one address, and for all of a request.
_CONNECT_TIMEOUT = 4
TIMEOUT = 10
# Of what is answered, more is never looked at.
_MOST_BYTES = 16_384
# A longer pause is no server's to ask for.
_LONGEST_PAUSE = 3600

# Its warnings quote URLs, which may hold secrets.
logging.getLogger("urllib3").setLevel(logging.ERROR)

_deadline: ContextVar[Deadline] = ContextVar("deadline")


@dataclass(frozen=True)
class Answer:
    """What a server answered; `seconds` is its Retry-After."""

    status: int
    body: bytes
    seconds: float | None

    @property
    def is_success(self) -> bool:
        """Whether it is 2xx. A redirect is none: what is posted goes nowhere else."""
        return 200 <= self.status < 300


def post(url: str, body: bytes, headers: Mapping[str, str], credentials: tuple[str, str] | None = None, *, timeout: float = TIMEOUT) -> Answer:
    """Post a body, and return whatever is answered. Raises `TryLater` when nothing is, or not in time."""
    with Deadline(timeout) as deadline, requests.Session() as session:
        token = _deadline.set(deadline)
        session.trust_env = False
        session.mount("http://", _Adapter())
        session.mount("https://", _Adapter())
        sent_headers = {"User-Agent": "latchkey", "Accept-Encoding": "identity", **headers}
        try:
            how: dict[str, Any] = {"timeout": timeout, "allow_redirects": False, "stream": True}
            with contextlib.closing(session.post(url, data=body, headers=sent_headers, auth=credentials, **how)) as response:
                if deadline.has_passed:
                    raise TimeoutError  # what has come by then is not all of the head
                answered = b""
                # The head says whether it worked. Whoever says no more than that has said enough.
                with contextlib.suppress(HTTPError, OSError):
                    answered = response.raw.read(_MOST_BYTES)
                return Answer(response.status_code, answered, _retry_after(response.headers.get("Retry-After")))
        except (requests.RequestException, HTTPError, OSError) as error:
            reason = f"not done within {deadline.seconds} s" if deadline.has_passed else why(error)
            raise TryLater(f"no answer: {reason}", is_down=True) from error
        finally:
            _deadline.reset(token)


class _Adapter(HTTPAdapter):
    """Connects so that the deadline of the request ends the connection, and verifies servers as mail does."""

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


def _retry_after(value: str | None) -> float | None:
    """Read a Retry-After header: seconds, or a date (RFC 9110, section 10.2.3)."""
    if value is None:
        return None
    if value.isascii() and value.isdigit() and len(value) < 10:
        return min(float(value), _LONGEST_PAUSE)
    try:
        seconds = (parsedate_to_datetime(value) - datetime.now(UTC)).total_seconds()
    except (ValueError, TypeError):
        return None
    return min(max(seconds, 0), _LONGEST_PAUSE)
