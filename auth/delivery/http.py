"""What is posted to those who send messages on, and to those who want to know of events."""

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
from auth.net.sockets import why

# Seconds for all of a request.
TIMEOUT = 10
# Of what is answered, more is never looked at.
_MOST_BYTES = 16_384
# A longer pause is no server's to ask for.
_LONGEST_PAUSE = 3600


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

    @property
    def status_line(self) -> str:
        """The status, and what it is called."""
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
) -> Answer:
    """Post a body, and return whatever is answered. Raises `TryLater` when nothing is, or not in time.

    `allows` says which addresses may be connected to; all of them unless it is given.
    """
    with one_deadline(timeout, allows) as deadline, requests.Session() as session:
        bound(session)
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
