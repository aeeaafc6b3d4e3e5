"""HTTP POST to SMS providers and webhooks, bounded in time and size."""

import contextlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from http import HTTPStatus
from typing import Any

import requests
from urllib3.exceptions import HTTPError

from auth.delivery.senders import TryLater
from auth.net.bounded_http import bound, one_deadline
from auth.net.sockets import Deadline, why

# Seconds for a whole request.
TIMEOUT = 10
# Bytes of a response that are read.
_MAX_BYTES = 16_384
# Seconds of a Retry-After that are respected.
_LONGEST_PAUSE = 3600


@dataclass(frozen=True)
class Response:
    """A server's response; `seconds` is its Retry-After."""

    status: int
    body: bytes
    seconds: float | None

    @property
    def is_success(self) -> bool:
        """Whether the status is 2xx. Redirects are not followed and do not count."""
        return 200 <= self.status < 300

    @property
    def status_line(self) -> str:
        """Status and reason phrase: `404 Not Found`."""
        try:
            return f"{self.status} {HTTPStatus(self.status).phrase}"
        except ValueError:
            return str(self.status)


def post(
    url: str,
    body: bytes,
    headers: Mapping[str, str],
    credentials: tuple[str, str] | None = None,
    *,
    timeout: float = TIMEOUT,
    allows: Callable[[str], bool] | None = None,
) -> Response:
    """Post a body and return the response. Raises `TryLater` when none comes in time.

    `allows` decides which addresses may be connected to; without it, all.
    """
    with one_deadline(timeout, allows) as deadline, requests.Session() as session:
        bound(session)
        sent_headers = {"User-Agent": "latchkey", "Accept-Encoding": "identity", **headers}
        options: dict[str, Any] = {"timeout": timeout, "allow_redirects": False, "stream": True}
        try:
            response = session.post(url, data=body, headers=sent_headers, auth=credentials, **options)
            with contextlib.closing(response):
                return _read(response, deadline)
        except (requests.RequestException, HTTPError, OSError) as error:
            reason = f"not done within {deadline.seconds} s" if deadline.has_passed else why(error)
            raise TryLater(f"no answer: {reason}", is_down=True) from error


def _read(response: requests.Response, deadline: Deadline) -> Response:
    if deadline.has_passed:
        raise TimeoutError  # the head may be cut off
    body = b""
    # The status is enough, even if the body never comes.
    with contextlib.suppress(HTTPError, OSError):
        body = response.raw.read(_MAX_BYTES)
    return Response(response.status_code, body, _retry_after(response.headers.get("Retry-After")))


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
