"""HTTP POST to hooks, webhooks and Twilio, bounded in time and size."""

import contextlib
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from http.client import responses
from typing import Any

from standardwebhooks import Webhook

from auth.core import promises
from auth.core.net.sockets import Deadline, why
from auth.delivery.senders.sender import TryLater

MOST_BYTES = 200 * 1024  # of a hook's request and answer
_MOST_READ = 16_384  # of another response


@dataclass(frozen=True)
class Response:
    """A server's response; `seconds` is its Retry-After."""

    status: int
    status_line: str
    content_type: str
    body: bytes
    seconds: float

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
    timeout: float = promises.HTTP_TIMEOUT,
    allows: Callable[[str], bool] | None = None,
    answers: bool = False,
) -> Response:
    """Post a body, to addresses that `allows` accepts. Raises `TryLater` if no response comes in time.

    Normally the status is enough, even if the body never arrives. With `answers` the whole body counts, and a
    request that failed in the network is repeated once.
    """
    # Imported late: most services send only mail, which saves 5 MiB of their delivery process.
    from urllib3.exceptions import HTTPError

    from auth.core.net.bounded_http import BoundedSession

    failures = (HTTPError, OSError, ValueError)  # a ValueError: a chunk with a negative length
    headers = {"User-Agent": "latchkey", "Accept-Encoding": "identity", **headers}
    most, tries = (MOST_BYTES + 1, 2) if answers else (_MOST_READ, 1)
    with Deadline(timeout, allows) as deadline, BoundedSession() as session:
        while True:
            try:
                response = session.post(url, data=body, headers=headers, auth=credentials, stream=True)
                answered = b""
                with response, contextlib.suppress(*(() if answers else failures)):
                    while len(answered) < most and (chunk := response.raw.read(most)):
                        answered += chunk
                # A body cut off by the deadline may look complete.
                if answers and deadline.has_passed:
                    raise TimeoutError
                return _response(response, answered)
            except failures as error:
                tries -= 1
                if deadline.has_passed or not tries:
                    reason = f"not done within {timeout} s" if deadline.has_passed else why(error)
                    raise TryLater(f"no answer: {reason}", is_down=True) from error


def post_signed(url: str, id: str, text: str, secrets: Sequence[str], **options: Any) -> Response:
    """Post JSON like `post`, signed with every secret (Standard Webhooks)."""
    now = datetime.now(UTC)
    headers = {
        "Content-Type": "application/json",
        "webhook-id": id,
        "webhook-timestamp": str(int(now.timestamp())),
        "webhook-signature": " ".join(Webhook(secret).sign(id, now, text) for secret in secrets),
    }
    return post(url, text.encode(), headers, **options)


def _response(response: Any, body: bytes) -> Response:
    from urllib3.exceptions import InvalidHeader
    from urllib3.util import Retry

    status, seconds = response.status_code, None
    with contextlib.suppress(InvalidHeader, ValueError, OverflowError):
        seconds = Retry(retry_after_max=promises.LONGEST_RETRY_AFTER).get_retry_after(response.raw)
    line = f"{status} {responses.get(status, '')}".strip()
    return Response(status, line, response.headers.get("Content-Type", ""), body, seconds or 0.0)
