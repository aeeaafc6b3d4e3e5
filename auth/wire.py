"""What all requests and responses have in common: ids, headers, CORS, prefixes, and how bodies and queries are read."""

import re
import uuid
from collections.abc import Iterable, Mapping
from typing import Any
from wsgiref.types import StartResponse, WSGIApplication, WSGIEnvironment

from flask import Flask, Response, g, request
from flask_cors import CORS
from marshmallow import Schema, ValidationError

from auth import json_bodies
from auth.errors import ApiError
from auth.settings import Settings

PREFIX = "/auth/v1"
MAX_BODY = 1024 * 1024
_MAX_USER_AGENT = 512
_SANE_REQUEST_ID = re.compile(r"[A-Za-z0-9._-]{8,128}")
_HEADERS = {"Cache-Control": "no-store", "X-Content-Type-Options": "nosniff", "Referrer-Policy": "no-referrer"}
_CORS_ALLOWED = ["authorization", "apikey", "content-type", "x-client-info", "x-supabase-api-version", "x-request-id"]
_CORS_EXPOSED = [
    "X-RateLimit-Limit", "X-RateLimit-Remaining", "X-RateLimit-Reset", "Retry-After", "X-Request-Id", "X-Total-Count", "Link",
]  # fmt: skip


class PrefixMiddleware:
    """Serves every path under `/auth/v1` too: what follows the prefix is all that the application sees."""

    def __init__(self, application: WSGIApplication) -> None:
        self._application = application

    def __call__(self, environ: WSGIEnvironment, start_response: StartResponse) -> Iterable[bytes]:
        path = environ["PATH_INFO"]
        if path == PREFIX or path.startswith(PREFIX + "/"):
            environ["PATH_INFO"] = path[len(PREFIX) :] or "/"
        return self._application(environ, start_response)


def register(app: Flask, settings: Settings) -> None:
    """Install what happens before and after each request."""
    app.before_request(_begin)
    app.after_request(_finish)
    CORS(app, origins=list(settings.cors_origins), allow_headers=_CORS_ALLOWED, expose_headers=_CORS_EXPOSED, send_wildcard=True, max_age=3600)
    app.wsgi_app = PrefixMiddleware(app.wsgi_app)  # type: ignore[method-assign]


def read_body(schema: Schema) -> dict[str, Any]:
    """Return the JSON body as the schema has checked it. Raises `ApiError` 400."""
    try:
        body = json_bodies.decode(request.get_data())
    except json_bodies.InvalidJson as error:
        raise ApiError(400, "bad_json", "The body could not be read", str(error)) from None
    return _checked(schema, body)


def read_query(schema: Schema) -> dict[str, Any]:
    """Return the query's parameters as the schema has checked them. Raises `ApiError` 400."""
    for name in schema.fields:
        if len(request.args.getlist(name)) > 1:
            raise ApiError(400, "validation_failed", "A parameter is repeated", f"{name}: must be given once")
    for name in schema.fields:
        if "\0" in request.args.get(name, ""):
            raise ApiError(400, "validation_failed", "A parameter is malformed", f"{name}: must not hold NUL characters")
    return _checked(schema, request.args.to_dict())


def client() -> dict[str, str | None]:
    """Return where the request comes from, as parameters for a statement that keeps it."""
    return {"ip": request.remote_addr or None, "user_agent": request.headers.get("User-Agent", "")[:_MAX_USER_AGENT] or None}


def json_response(text: str, status: int = 200) -> Response:
    """Return a response whose JSON is there as text already, as Postgres has made it."""
    return Response(text, status, mimetype="application/json")


def _checked(schema: Schema, values: Mapping[str, Any]) -> dict[str, Any]:
    try:
        return schema.load(values)
    except ValidationError as error:
        details = "; ".join(f"{name}: {_first(problem)}" for name, problem in sorted(error.normalized_messages().items()))
        raise ApiError(400, "validation_failed", "The request is not valid", details) from None


def _first(problem: Any) -> str:
    text = str(problem[0] if isinstance(problem, list) else problem)
    return "is required" if text == "Missing data for required field." else text


def _begin() -> None:
    """Give the request its id, and refuse a body that no view may see."""
    sent = request.headers.get("X-Request-Id", "")
    g.request_id = sent if _SANE_REQUEST_ID.fullmatch(sent) else str(uuid.uuid4())
    has_body = bool(request.content_length) or "Transfer-Encoding" in request.headers
    if has_body and request.method not in ("GET", "HEAD", "OPTIONS"):
        # Compared here: Werkzeug's own limit bites only when a body is read.
        if (request.content_length or 0) > MAX_BODY:
            raise ApiError(413, "request_entity_too_large", "The body is larger than 1 MiB")
        if request.mimetype != "application/json":
            raise ApiError(415, "unsupported_media_type", "The body must be JSON", "Content-Type: must be application/json")


def _finish(response: Response) -> Response:
    for name, value in _HEADERS.items():
        response.headers.setdefault(name, value)
    response.headers["X-Request-Id"] = g.request_id
    return response
