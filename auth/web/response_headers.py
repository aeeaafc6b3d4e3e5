"""Headers of every response, whether Flask or gunicorn makes it."""

import json
import uuid
from http import HTTPStatus

SECURITY = (("X-Content-Type-Options", "nosniff"), ("Referrer-Policy", "no-referrer"))
CORS_EXPOSED = [
    *("X-RateLimit-Limit", "X-RateLimit-Remaining", "X-RateLimit-Reset"),
    *("Retry-After", "X-Request-Id", "X-Total-Count", "Link"),
]
CORS_FOR_ALL = (
    ("Access-Control-Allow-Origin", "*"),
    ("Access-Control-Expose-Headers", ", ".join(CORS_EXPOSED)),
)


def error_response(key: str) -> tuple[bytes, int, str]:
    """Return a raw response that ends the connection, its status and its request id."""
    # Not at the top: the master imports this module, and must not keep old application code after a reload.
    from auth.web.errors import ApiError

    request_id = str(uuid.uuid4())
    error = ApiError(key, request_id=request_id)
    body = json.dumps({"code": error.status, "msg": error.msg, "error_code": error.error_code})
    headers = dict(SECURITY + CORS_FOR_ALL) | {
        "Connection": "close",
        "Content-Type": "application/json",
        "Content-Length": str(len(body)),
        "Cache-Control": "no-store",
        "X-Request-Id": request_id,
    }
    status_line = f"HTTP/1.1 {error.status} {HTTPStatus(error.status).phrase}"
    lines = [status_line, *(f"{name}: {value}" for name, value in headers.items()), "", body]
    return "\r\n".join(lines).encode(), error.status, request_id
