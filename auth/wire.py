"""What all requests and responses have in common: ids, headers, CORS, prefixes, and how bodies and queries are read."""

import functools
import re
import time
import uuid
from collections.abc import Callable, Iterable, Mapping
from typing import Any, TypeVar
from wsgiref.types import StartResponse, WSGIApplication, WSGIEnvironment

import structlog
from flask import Flask, Response, current_app, g, request
from flask_cors import CORS
from marshmallow import Schema, ValidationError
from werkzeug.datastructures import MultiDict
from werkzeug.middleware.proxy_fix import ProxyFix

from auth import json_bodies, networks
from auth.context import latchkey
from auth.errors import ApiError
from auth.schemas import RedirectQuery
from auth.settings import Settings

log = structlog.get_logger()

_FORWARDED = {"X-Forwarded-For", "X-Forwarded-Proto"}
PREFIX = "/auth/v1"
FORM = "application/x-www-form-urlencoded"
MAX_BODY = 1024 * 1024
_MAX_USER_AGENT = 512
_SANE_REQUEST_ID = re.compile(r"[A-Za-z0-9._-]{8,128}")
_HEADERS = {"Cache-Control": "no-store", "X-Content-Type-Options": "nosniff", "Referrer-Policy": "no-referrer"}
_CORS_ALLOWED = ["authorization", "apikey", "content-type", "x-client-info", "x-supabase-api-version", "x-request-id"]
_CORS_EXPOSED = [
    "X-RateLimit-Limit", "X-RateLimit-Remaining", "X-RateLimit-Reset", "Retry-After", "X-Request-Id", "X-Total-Count", "Link",
]  # fmt: skip


View = TypeVar("View", bound=Callable)


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
    if settings.trusted_proxies:
        app.wsgi_app = ProxyFix(app.wsgi_app, x_for=settings.trusted_proxies, x_proto=settings.trusted_proxies)  # type: ignore[method-assign]
    CORS(app, origins=list(settings.cors_origins), allow_headers=_CORS_ALLOWED, expose_headers=_CORS_EXPOSED, send_wildcard=True, max_age=3600)
    app.wsgi_app = PrefixMiddleware(app.wsgi_app)  # type: ignore[method-assign]


def accepts_forms(view: View) -> View:
    """Let a view be sent `application/x-www-form-urlencoded` too."""
    view.accepts_forms = True  # type: ignore[attr-defined]
    return view


def read_body(schema: Schema) -> dict[str, Any]:
    """Return the body as the schema has checked it. Raises `ApiError` 400."""
    if request.mimetype == FORM:
        _whole_body()
        return _checked(schema, _single_values(schema, request.form))
    return _checked(schema, json_body())


def json_body() -> dict[str, Any]:
    """Return the JSON body unchecked: what decides which limit counts is read before the view. Raises `ApiError` 400."""
    if "json_body" not in g:
        try:
            g.json_body = json_bodies.decode(_whole_body())
        except json_bodies.InvalidJson as error:
            raise ApiError(400, "bad_json", "The body could not be read", str(error)) from None
    return g.json_body


def read_query(schema: Schema) -> dict[str, Any]:
    """Return the query's parameters as the schema has checked them. Raises `ApiError` 400."""
    return _checked(schema, _single_values(schema, request.args))


def checked_redirect(body: Mapping[str, Any]) -> str | None:
    """Return where a request wants its link to lead, from body or query: the site where that is not allowed, None where it says nothing."""
    sent = body.get("redirect_to") or read_query(RedirectQuery()).get("redirect_to")
    return latchkey.redirects.checked(sent) if sent else None


def client() -> dict[str, str | None]:
    """Return where the request comes from, as parameters for a statement that keeps it."""
    return {"ip": g.ip, "network": g.network, "user_agent": g.user_agent}


def json_response(text: str, status: int = 200) -> Response:
    """Return a response whose JSON is there as text already, as Postgres has made it."""
    return Response(text, status, mimetype="application/json")


def _whole_body() -> bytes:
    """Return the body. Raises `ApiError` 413: one that does not say its length is cut off by Werkzeug, a byte after what is allowed."""
    body = request.get_data()
    if len(body) > MAX_BODY:
        raise _too_large()
    if len(body) < (request.content_length or 0):
        raise ApiError(400, "bad_json", "The body could not be read", "the body is shorter than its Content-Length")
    return body


def _too_large() -> ApiError:
    return ApiError(413, "request_entity_too_large", "The body is larger than 1 MiB")


def _single_values(schema: Schema, values: MultiDict[str, str]) -> dict[str, str]:
    for name in schema.fields:
        if len(values.getlist(name)) > 1:
            raise ApiError(400, "validation_failed", "A parameter is repeated", f"{name}: must be given once")
        # Postgres can't store it.
        if "\0" in values.get(name, ""):
            raise ApiError(400, "validation_failed", "A parameter is malformed", f"{name}: must not hold NUL characters")
    return values.to_dict()


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
    """Give the request its id, find out where it comes from, and refuse a body that no view may see."""
    g.began_at = time.perf_counter()
    sent = request.headers.get("X-Request-Id", "")
    g.request_id = sent if _SANE_REQUEST_ID.fullmatch(sent) else str(uuid.uuid4())
    address = networks.parse(request.remote_addr or "")
    g.user_agent = request.headers.get("User-Agent", "")[:_MAX_USER_AGENT] or None
    g.ip, g.network = str(address) if address else None, networks.network_of(address)
    if address and not latchkey.settings.trusted_proxies and not _FORWARDED.isdisjoint(request.headers.keys()) and not address.is_global:
        _warn_of_proxy()
    has_body = bool(request.content_length) or "Transfer-Encoding" in request.headers
    if has_body and request.method not in ("GET", "HEAD", "OPTIONS"):
        # Compared here: Werkzeug's own limit bites only when a body is read.
        if (request.content_length or 0) > MAX_BODY:
            raise _too_large()
        view = current_app.view_functions.get(request.endpoint or "")
        if request.mimetype != "application/json" and not (request.mimetype == FORM and getattr(view, "accepts_forms", False)):
            raise ApiError(415, "unsupported_media_type", "The body must be JSON", "Content-Type: must be application/json")


@functools.cache
def _warn_of_proxy() -> None:
    log.warning("proxy_not_trusted", reason="a peer of this network sends X-Forwarded-For: if it is your proxy, set AUTH_TRUSTED_PROXIES to 1")


def _finish(response: Response) -> Response:
    for name, value in _HEADERS.items():
        response.headers.setdefault(name, value)
    response.headers["X-Request-Id"] = g.request_id
    # The route, not the path, and never the query: links and state are in there.
    route = request.url_rule.rule if request.url_rule else None
    caller = g.get("caller")
    log.info(
        "request",
        method=request.method,
        route=route,
        status=response.status_code,
        milliseconds=round((time.perf_counter() - g.began_at) * 1000, 1),
        ip=g.ip,
        user_id=caller.user_id if caller else None,
    )
    return response
