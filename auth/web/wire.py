"""What all requests and responses have in common: ids, headers, CORS, prefixes, and how bodies and queries are read."""

import functools
import re
import time
import uuid
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, TypeVar
from wsgiref.types import StartResponse, WSGIApplication, WSGIEnvironment

import structlog
from flask import Flask, Response, current_app, g, request
from flask_cors import cross_origin
from marshmallow import Schema, ValidationError
from marshmallow.exceptions import SCHEMA
from werkzeug.datastructures import MultiDict
from werkzeug.middleware.proxy_fix import ProxyFix

from auth.context import latchkey
from auth.net import networks
from auth.settings import Settings
from auth.web import json_bodies, limits, response_headers
from auth.web.errors import ApiError
from auth.web.schemas import RedirectQuery

log = structlog.get_logger()

_FORWARDED = {"HTTP_X_FORWARDED_FOR", "HTTP_X_FORWARDED_PROTO"}  # as WSGI spells them
PREFIX = "/auth/v1"
FORM = "application/x-www-form-urlencoded"
MAX_BODY = 1024 * 1024
_MAX_USER_AGENT = 512
# What marshmallow says, in words that go after a field's name.
_SENTENCES = {"Missing data for required field.": "is required", "Invalid input type.": "must be an object"}
_SANE_REQUEST_ID = re.compile(r"[A-Za-z0-9._-]{8,128}")
_CORS_ALLOWED = ["authorization", "apikey", "content-type", "x-client-info", "x-supabase-api-version", "x-request-id"]

View = TypeVar("View", bound=Callable)


def request_context() -> dict[str, str]:
    """Return what every log event of a request carries: its id, once it has one."""
    try:
        return {"request_id": g.request_id}
    except (RuntimeError, AttributeError):
        return {}


class Edge:
    """The outermost layer. Serves every path under `/auth/v1` too, adds the headers that every response has, and logs the request.

    Werkzeug checks and copies each header that a response is given: for these, which are always the same, that is work for nothing.
    """

    def __init__(self, application: WSGIApplication, settings: Settings) -> None:
        self._application = application
        self._is_open = _is_for_any_origin(settings)
        # Bound once, after `logs.configure`: structlog would bind a logger for each line.
        self._log = log.bind()

    def __call__(self, environ: WSGIEnvironment, start_response: StartResponse) -> Iterable[bytes]:
        path = environ["PATH_INFO"]
        if path == PREFIX or path.startswith(PREFIX + "/"):
            environ["PATH_INFO"] = path[len(PREFIX) :] or "/"

        def start(status: str, headers: list[tuple[str, str]], exc_info: Any = None) -> Callable[[bytes], object]:
            # Flask answers while its context is still there.
            code = int(status[:3])
            names = {name for name, _ in headers}
            headers += response_headers.SECURITY
            headers.append(("X-Request-Id", g.request_id))
            headers += limits.headers(code)
            if "Cache-Control" not in names:
                headers.append(("Cache-Control", "no-store"))
            if self._is_open and environ["REQUEST_METHOD"] != "OPTIONS" and "Cross-Origin-Resource-Policy" not in names:
                headers += response_headers.CORS_FOR_ALL
            self._log_request(environ["REQUEST_METHOD"], code)
            return start_response(status, headers, exc_info)

        return self._application(environ, start)

    def _log_request(self, method: str, status: int) -> None:
        rule, caller = request.url_rule, g.get("caller")
        self._log.info(
            "request",
            method=method,
            # The route, not the path, and never the query: links and state are in there.
            route=rule.rule if rule else None,
            status=status,
            milliseconds=round((time.perf_counter() - g.began_at) * 1000, 1),
            ip=g.ip,
            user_id=caller.user_id if caller else None,
            request_id=g.request_id,
        )


def register(app: Flask, settings: Settings) -> None:
    """Install what happens before and after each request."""
    app.before_request(_begin)
    app.after_request(_cors(settings))
    # As Flask says to wrap an application: around `wsgi_app`, so that the Flask object itself is still at hand.
    if settings.trusted_proxies:
        app.wsgi_app = ProxyFix(app.wsgi_app, x_for=settings.trusted_proxies, x_proto=settings.trusted_proxies)  # type: ignore[method-assign]
    app.wsgi_app = Edge(app.wsgi_app, settings)  # type: ignore[method-assign]


def accepts_forms(view: View) -> View:
    """Let a view be sent `application/x-www-form-urlencoded` too."""
    view.accepts_forms = True  # type: ignore[attr-defined]
    return view


def read_body(schema: Schema) -> dict[str, Any]:
    """Return the body as the schema has checked it. Raises `ApiError` 400."""
    if request.mimetype == FORM:
        whole_body()
        return _checked(schema, _single_values(schema, request.form))
    return _checked(schema, json_body())


def json_body() -> dict[str, Any]:
    """Return the JSON body unchecked: what decides which limit counts is read before the view. Raises `ApiError` 400."""
    if "json_body" not in g:
        try:
            g.json_body = json_bodies.decode(whole_body())
        except json_bodies.InvalidJson as error:
            raise ApiError("bad_json", str(error)) from None
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


def whole_body() -> bytes:
    """Return the body. Raises `ApiError` 413: one that does not say its length is read to a byte after what is allowed."""
    body = request.get_data()
    if len(body) > MAX_BODY:
        raise _too_large()
    if len(body) < (request.content_length or 0):
        raise ApiError("bad_json", "the body is shorter than its Content-Length")
    return body


def _too_large() -> ApiError:
    return ApiError("request_entity_too_large")


def _single_values(schema: Schema, values: MultiDict[str, str]) -> dict[str, str]:
    for name in schema.fields:
        if len(values.getlist(name)) > 1:
            raise ApiError("validation_failed", f"{name}: must be given once")
        # Postgres can't store it.
        if "\0" in values.get(name, ""):
            raise ApiError("validation_failed", f"{name}: must not hold NUL characters")
    return values.to_dict()


def _checked(schema: Schema, values: Mapping[str, Any]) -> dict[str, Any]:
    try:
        return schema.load(values)
    except ValidationError as error:
        details = "; ".join(f"{name}: {problem}" for name, problem in _problems(error.normalized_messages()))
        raise ApiError("validation_failed", details) from None


def _problems(messages: Mapping[Any, Any], *inside: str) -> Iterator[tuple[str, str]]:
    """Yield the fields that are wrong, those of an object after a dot, each with the first thing that is wrong with it."""
    for name, problem in sorted(messages.items()):
        # What is wrong with an object as a whole, marshmallow says under a name of its own; items of a list have numbers.
        path = inside if name == SCHEMA else (*inside, str(name))
        if isinstance(problem, Mapping):
            yield from _problems(problem, *path)
        else:
            yield ".".join(path), _SENTENCES.get(problem[0], problem[0])


def _begin() -> None:
    """Give the request its id, find out where it comes from, and refuse a body that no view may see."""
    environ = request.environ
    g.began_at = time.perf_counter()
    sent = environ.get("HTTP_X_REQUEST_ID", "")
    g.request_id = sent if _SANE_REQUEST_ID.fullmatch(sent) else str(uuid.uuid4())
    g.user_agent = environ.get("HTTP_USER_AGENT", "")[:_MAX_USER_AGENT] or None
    g.ip, g.network, is_far = networks.locate(environ.get("REMOTE_ADDR", ""))
    if not is_far and not _FORWARDED.isdisjoint(environ) and not latchkey.settings.trusted_proxies:
        _warn_of_proxy()
    if environ["REQUEST_METHOD"] not in ("GET", "HEAD", "OPTIONS"):
        _refuse_body(request.content_length or 0, "HTTP_TRANSFER_ENCODING" in environ)


def _refuse_body(length: int, is_chunked: bool) -> None:
    """Raise `ApiError` for a body that is too large, or of a type that the view does not take."""
    # Compared here, so that it is not read.
    if length > MAX_BODY:
        raise _too_large()
    if (length or is_chunked) and request.mimetype != "application/json":
        view = current_app.view_functions.get(request.endpoint or "")
        if request.mimetype != FORM or not getattr(view, "accepts_forms", False):
            raise ApiError("unsupported_media_type", "Content-Type: must be application/json")


@functools.cache
def _warn_of_proxy() -> None:
    log.warning("proxy_not_trusted", reason="a peer of this network sends X-Forwarded-For: if it is your proxy, set AUTH_TRUSTED_PROXIES to 1")


def _is_for_any_origin(settings: Settings) -> bool:
    return settings.cors_origins == ("*",)


def _cors(settings: Settings) -> Callable[[Response], Response]:
    with_cors = cross_origin(
        origins=list(settings.cors_origins),
        allow_headers=_CORS_ALLOWED,
        expose_headers=response_headers.CORS_EXPOSED,
        send_wildcard=True,
        max_age=3600,
        automatic_options=False,
    )(lambda response: response)
    if not _is_for_any_origin(settings):
        return with_cors
    # To work this out for each request would cost more than many a view, and where any origin may read it is known.
    return lambda response: with_cors(response) if request.method == "OPTIONS" else response
