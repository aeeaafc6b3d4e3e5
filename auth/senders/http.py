"""HTTP POST to SMS providers and webhooks, bounded in time and size."""

import contextlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from http.client import responses

from standardwebhooks import Webhook

from auth.net.sockets import Deadline, why
from auth.senders.sender import TryLater

TIMEOUT = 10  # seconds for a whole request
_MAX_BYTES = 16_384
_LONGEST_PAUSE = 3600  # seconds of a Retry-After that are honoured


@dataclass(frozen=True)
class Response:
    """A server's response; `seconds` is its Retry-After."""

    status: int
    body: bytes
    seconds: float | None

    @property
    def is_success(self) -> bool:
        return 200 <= self.status < 300

    @property
    def status_line(self) -> str:
        return f"{self.status} {responses.get(self.status, '')}".strip()


def post(
    url: str,
    body: bytes,
    headers: Mapping[str, str],
    credentials: tuple[str, str] | None = None,
    *,
    timeout: float = TIMEOUT,
    allows: Callable[[str], bool] | None = None,
) -> Response:
    """Post a body, to addresses that `allows` accepts. Raises `TryLater` if no response comes in time."""
    # Most services send only mail: 5 MiB of their delivery process.
    from urllib3.exceptions import HTTPError

    from auth.net.bounded_http import BoundedSession

    headers = {"User-Agent": "latchkey", "Accept-Encoding": "identity", **headers}
    with Deadline(timeout, allows) as deadline, BoundedSession() as session:
        try:
            response = session.post(url, data=body, headers=headers, auth=credentials, stream=True)
        except (HTTPError, OSError) as error:
            reason = f"not done within {timeout} s" if deadline.has_passed else why(error)
            raise TryLater(f"no answer: {reason}", is_down=True) from error
        answered = b""
        # The status is enough, even if the body never comes, or has a chunk of a negative length.
        with response, contextlib.suppress(HTTPError, OSError, ValueError):
            answered = response.raw.read(_MAX_BYTES)
        return Response(response.status_code, answered, _retry_after(response.headers.get("Retry-After")))


def signed_headers(id: str, body: str, secrets: Sequence[str]) -> dict[str, str]:
    """Return the headers of a JSON body, signed with every secret (Standard Webhooks)."""
    now = datetime.now(UTC)
    return {
        "Content-Type": "application/json",
        "webhook-id": id,
        "webhook-timestamp": str(int(now.timestamp())),
        "webhook-signature": " ".join(Webhook(secret).sign(id, now, body) for secret in secrets),
    }


def _retry_after(value: str | None) -> float | None:
    """Read a Retry-After header: seconds, or a date (RFC 9110, section 10.2.3)."""
    try:
        if value and value.isascii() and value.isdigit():
            seconds = float(value)
        else:
            seconds = (parsedate_to_datetime(value or "") - datetime.now(UTC)).total_seconds()
    except (ValueError, TypeError):
        return None
    return min(max(seconds, 0), _LONGEST_PAUSE)
