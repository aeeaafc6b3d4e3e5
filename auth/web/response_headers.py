"""Headers of every response, whether it comes from Flask or gunicorn."""

import json
import uuid
from http import HTTPStatus

import structlog
from gunicorn.http.errors import LimitRequestHeaders, LimitRequestLine, ParseException

from auth.web.errors import ApiError

SECURITY = (("X-Content-Type-Options", "nosniff"), ("Referrer-Policy", "no-referrer"))
# Of what is not a page: data, styles, scripts and redirects.
NO_PAGE = ("Content-Security-Policy", "default-src 'none'; frame-ancestors 'none'")

# Keys of `ERRORS` for the exceptions of gunicorn's parser.
_REFUSALS = {
    LimitRequestLine: "url.request_entity_too_large",
    LimitRequestHeaders: "headers.request_entity_too_large",
    ParseException: "http.validation_failed",
    BaseException: "unexpected_failure",
}


def refuse(exception: BaseException, ip: str) -> bytes:
    """Log a request that gunicorn refuses, and return a raw response that ends the connection."""
    key = next(_REFUSALS[kind] for kind in _REFUSALS if isinstance(exception, kind))
    request_id = str(uuid.uuid4())
    error = ApiError(key, request_id=request_id)
    body = json.dumps({"code": error.status, "msg": error.msg, "error_code": error.error_code})
    headers = dict((*SECURITY, NO_PAGE)) | {
        "Connection": "close",
        "Content-Type": "application/json",
        "Content-Length": str(len(body)),
        "Cache-Control": "no-store",
        "X-Request-Id": request_id,
    }
    status_line = f"HTTP/1.1 {error.status} {HTTPStatus(error.status).phrase}"
    lines = [status_line, *(f"{name}: {value}" for name, value in headers.items()), "", body]
    # Not the request itself, which may hold secrets.
    facts = {"status": error.status, "error": type(exception).__name__, "request_id": request_id}
    structlog.get_logger().warning("invalid_request", ip=ip, **facts)
    return "\r\n".join(lines).encode()
