"""Headers of every response, whether Flask or gunicorn makes it."""

import json
import uuid
from http import HTTPStatus

SECURITY = (("X-Content-Type-Options", "nosniff"), ("Referrer-Policy", "no-referrer"))
CORS_EXPOSED = [
    "X-RateLimit-Limit", "X-RateLimit-Remaining", "X-RateLimit-Reset", "Retry-After", "X-Request-Id", "X-Total-Count", "Link",
]  # fmt: skip
# For pages of any origin (AUTH_CORS_ORIGINS=*).
CORS_FOR_ALL = (("Access-Control-Allow-Origin", "*"), ("Access-Control-Expose-Headers", ", ".join(CORS_EXPOSED)))


def error_response(status: int, error_code: str, msg: str) -> tuple[bytes, str]:
    """Return the bytes of a response with the error envelope, after which the connection ends, and its request id."""
    body, request_id = json.dumps({"code": status, "msg": msg, "error_code": error_code}), str(uuid.uuid4())
    headers = dict(SECURITY + CORS_FOR_ALL) | {
        "Connection": "close",
        "Content-Type": "application/json",
        "Content-Length": str(len(body)),
        "Cache-Control": "no-store",
        "X-Request-Id": request_id,
    }
    lines = [f"HTTP/1.1 {status} {HTTPStatus(status).phrase}", *(f"{name}: {value}" for name, value in headers.items()), "", body]
    return "\r\n".join(lines).encode(), request_id
