"""HTTP POST to hooks, webhooks, providers of captchas and Twilio, bounded in time and size."""

import contextlib
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from http.client import responses
from typing import TYPE_CHECKING, Any

from standardwebhooks import Webhook

from auth.core import constants
from auth.core.net.sockets import Deadline, why
from auth.core.sender import TryLater

if TYPE_CHECKING:
    import requests

    from auth.core.net.bounded_http import BoundedSession

MOST_BYTES = 200 * 1024  # a hook's request, and its answer
_MOST_READ = 16_384  # bytes of any other response
_HEADERS = {"User-Agent": "latchkey"}


@dataclass(frozen=True)
class Response:
    """A server's response; `retry_after` is in seconds."""

    status: int
    status_line: str
    content_type: str
    body: bytes
    retry_after: float

    @property
    def is_success(self) -> bool:
        return 200 <= self.status < 300

    def members(self) -> dict[str, Any]:
        """Return the JSON object in the body; an empty one for another body, or for one that was cut off."""
        try:
            answer = json.loads(self.body)
        except (ValueError, RecursionError):
            return {}
        return answer if isinstance(answer, dict) and len(self.body) <= MOST_BYTES else {}


def post(
    url: str,
    body: bytes,
    headers: Mapping[str, str],
    credentials: tuple[str, str] | None = None,
    *,
    timeout: float = constants.HTTP_TIMEOUT,
    allows: Callable[[str], bool] | None = None,
) -> Response:
    """Post a body, to addresses that `allows` accepts. Raises `TryLater` if no response comes in time.

    The status is enough, even if the body never arrives.
    """
    headers, content = {**_HEADERS, **headers}, b""
    with _session(timeout, allows) as (session, _):
        response = session.post(url, data=body, headers=headers, auth=credentials, stream=True)
        with response, contextlib.suppress(*_failures()):
            for chunk in _chunks(response, _MOST_READ):
                content += chunk
        return _response(response, content)


def ask(
    url: str,
    body: bytes,
    headers: Mapping[str, str],
    *,
    timeout: float = constants.HTTP_TIMEOUT,
    allows: Callable[[str], bool] | None = None,
) -> Response:
    """Post a body, and return the whole answer. Repeats once a request that failed in the network."""
    with _session(timeout, allows) as (session, deadline):

        def ask_once() -> Response:
            with session.post(url, data=body, headers={**_HEADERS, **headers}, stream=True) as response:
                return _response(response, b"".join(_chunks(response, MOST_BYTES + 1)))

        try:
            return ask_once()
        except _failures():
            if deadline.has_passed:
                raise
            return ask_once()


def signed_headers(id: str, text: str, secrets: Sequence[str]) -> dict[str, str]:
    """Return the headers of a request with JSON, signed with every secret (Standard Webhooks)."""
    now = datetime.now(UTC)
    return {
        "Content-Type": "application/json",
        "webhook-id": id,
        "webhook-timestamp": str(int(now.timestamp())),
        "webhook-signature": " ".join(Webhook(secret).sign(id, now, text) for secret in secrets),
    }


@contextlib.contextmanager
def _session(
    timeout: float, allows: Callable[[str], bool] | None
) -> "Iterator[tuple[BoundedSession, Deadline]]":
    """Bound all requests of the block together in time. Raise their failures as `TryLater`."""
    from auth.core.net.bounded_http import BoundedSession

    with Deadline(timeout, allows) as deadline, BoundedSession() as session:
        try:
            yield session, deadline
        except _failures() as error:
            reason = f"not done within {timeout} s" if deadline.has_passed else why(error)
            raise TryLater(f"no answer: {reason}", is_down=True) from error


def _failures() -> tuple[type[Exception], ...]:
    # Imported late: `latchkey deliver` mostly sends mail alone, and saves 5 MiB.
    from urllib3.exceptions import HTTPError

    return HTTPError, OSError, ValueError  # a ValueError: a chunk with a negative length


def _chunks(response: "requests.Response", most: int) -> Iterator[bytes]:
    """Yield the body, until `most` bytes or more are read."""
    size = 0
    while size < most and (chunk := response.raw.read(most)):
        size += len(chunk)
        yield chunk


def _response(response: "requests.Response", body: bytes) -> Response:
    from urllib3.exceptions import InvalidHeader
    from urllib3.util import Retry

    status, retry_after = response.status_code, None
    with contextlib.suppress(InvalidHeader, ValueError, OverflowError):
        retry_after = Retry(retry_after_max=constants.LONGEST_RETRY_AFTER).get_retry_after(response.raw)
    line = f"{status} {responses.get(status, '')}".strip()
    return Response(status, line, response.headers.get("Content-Type", ""), body, retry_after or 0.0)
