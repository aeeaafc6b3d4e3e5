"""HTTP as bytes: requests that no thread has read yet, and answers to what does not become one."""

import json
import re
import uuid

from auth.web import response_headers

# A request up to this size is collected before it is given to a thread; of a longer one, its beginning.
COLLECTED = 65_536
# Of heads in lower case. No body is as long as a longer number says; and Python refuses to read very long ones.
_LENGTH = re.compile(rb"\r\ncontent-length:[ \t]*([0-9]{1,18})[ \t]*(?=\r\n)")
_CLOSES = re.compile(rb"\r\nconnection:[^\r\n]*\bclose\b")

_STATUSES = {
    400: ("Bad Request", "validation_failed", "The request is not valid HTTP"),
    414: ("URI Too Long", "request_entity_too_large", "The path and query are too long"),
    431: ("Request Header Fields Too Large", "request_entity_too_large", "The headers are too large"),
    500: ("Internal Server Error", "unexpected_failure", "Something went wrong on our side"),
    503: ("Service Unavailable", "service_unavailable", "Too many requests at once; try again shortly"),
}


def error_answer(status: int, *headers: str) -> tuple[bytes, str]:
    """Return an answer with the error envelope, and the id that it gives the request."""
    reason, error_code, msg = _STATUSES[status]
    request_id = str(uuid.uuid4())
    body = json.dumps({"code": status, "msg": msg, "error_code": error_code})
    head = [
        f"HTTP/1.1 {status} {reason}",
        *headers,
        "Content-Type: application/json",
        f"Content-Length: {len(body)}",
        "Cache-Control: no-store",
        # Which origin asks has not been read, and such an answer says nothing of anybody: any page may see that it is to come back later.
        *(f"{name}: {value}" for name, value in (*response_headers.SECURITY, *response_headers.CORS_FOR_ALL)),
        f"X-Request-Id: {request_id}",
    ]
    return "\r\n".join([*head, "", body]).encode(), request_id


def is_for_a_thread(data: bytes) -> bool:
    """Whether a thread is to have this request: all of it is here, or more than is collected, or as much as comes without a thread.

    A body in chunks, or one that its client would be told to send (`Expect`), is read by a thread, which waits for it.
    """
    end = data.find(b"\r\n\r\n")
    if end < 0:
        return len(data) >= COLLECTED
    head = data[: end + 2].lower()
    length = _body_length(head)
    return length is None or b"\r\nexpect:" in head or len(data) >= min(end + 4 + length, COLLECTED)


def is_endless(data: bytes) -> bool:
    """Whether no head ends within what is collected: to parse a longer one takes time that grows with its square."""
    return len(data) >= COLLECTED and data.find(b"\r\n\r\n", 0, COLLECTED) < 0


def is_complete(data: bytes) -> bool:
    """Whether all of a request is here, as far as that can be told: nobody will wait for its client."""
    end = _end(data)
    return end is not None and end <= len(data)


def may_stay(data: bytes) -> bool:
    """Whether this is one HTTP/1.1 request and nothing else, so that the next one on its connection can be told from it."""
    if _end(data) != len(data):
        return False
    head = data[: data.find(b"\r\n\r\n") + 2].lower()
    # The answer to HEAD has no body; ours, to what is turned away, has.
    return not head.startswith(b"head ") and not _CLOSES.search(head) and b" http/1.0\r\n" not in head


def _end(data: bytes) -> int | None:
    """Return how long the request is that begins here, or None where its head does not say so, for sure."""
    end = data.find(b"\r\n\r\n")
    head = data[: end + 2].lower()
    # gunicorn skips an empty line at the beginning, which some clients have added to the body before.
    if end < 0 or head.startswith(b"\r\n") or b"transfer-encoding" in head or b"expect" in head:
        return None
    length = _body_length(head)
    return None if length is None else end + 4 + length


def _body_length(head: bytes) -> int | None:
    """Return how long the body is that a head in lower case announces, or None where that can't be told for sure."""
    lengths = _LENGTH.findall(head)
    if len(lengths) > 1 or head.count(b"content-length") != len(lengths):
        return None
    return int(lengths[0]) if lengths else 0
