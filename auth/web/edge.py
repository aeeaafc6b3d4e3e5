"""What every request and response passes: request ids, client addresses, CORS, headers, the log line."""

import functools
import os
import re
import time
import uuid
from collections.abc import Callable, Iterable
from typing import Any
from wsgiref.types import StartResponse, WSGIApplication, WSGIEnvironment

import structlog
from flask import Flask, Response, current_app, request
from flask_cors import cross_origin
from flask_cors.core import FLASK_CORS_EVALUATED
from werkzeug.middleware.proxy_fix import ProxyFix

from auth.context import EXTENSION, Latchkey, latchkey
from auth.net import networks
from auth.settings import Settings
from auth.settings.state import METRICS_DIRECTORY
from auth.web import dialect, g, limits, response_headers
from auth.web.errors import ApiError
from auth.web.input import refuse_body
from auth.web.routes import route_of

log = structlog.get_logger()

_FORWARDED = {"HTTP_X_FORWARDED_FOR", "HTTP_X_FORWARDED_PROTO"}
_MAX_USER_AGENT = 512
_REQUEST_ID = re.compile(r"[A-Za-z0-9._-]{8,128}")
_HOST = re.compile(r"[A-Za-z0-9._~:\[\]-]+")
_CORS_ALLOWED = [
    *("authorization", "apikey", "content-type"),
    *("x-client-info", "x-supabase-api-version", "x-request-id"),
]
# Browsers open these; no page reads them by a script (RFC 9700, section 2.6).
_WITHOUT_CORS = {"/authorize", "/callback", "/oauth/authorize", "/oauth/continue"}


class Edge:
    """WSGI middleware that serves every path under `/auth/v1` too, adds headers, and logs the request."""

    def __init__(self, application: WSGIApplication, parts: Latchkey) -> None:
        self._application = application
        self._allows_any_origin = _allows_any_origin(parts.settings)
        self._metrics = _metrics(parts)

    def __call__(self, environ: WSGIEnvironment, start_response: StartResponse) -> Iterable[bytes]:
        path = environ["PATH_INFO"]
        if path == dialect.PREFIX or path.startswith(dialect.PREFIX + "/"):
            environ["SCRIPT_NAME"] = environ.get("SCRIPT_NAME", "") + dialect.PREFIX
            environ["PATH_INFO"] = path[len(dialect.PREFIX) :] or "/"
        dialect.find_route(environ)
        allows_any_origin = self._allows_any_origin and environ["PATH_INFO"] not in _WITHOUT_CORS

        began_at = time.perf_counter()

        # Flask calls this within its request context.
        def start(status: str, headers: list[tuple[str, str]], exc_info: Any = None) -> Any:
            method, code = environ["REQUEST_METHOD"], int(status[:3])
            names = {name for name, _ in headers}
            headers += [*response_headers.SECURITY, ("X-Request-Id", g.request_id), *limits.headers(code)]
            if "Cache-Control" not in names:
                headers.append(("Cache-Control", "no-store"))
            if "Content-Security-Policy" in names:
                # For browsers and scanners that do not know frame-ancestors.
                frames_itself = "frame-ancestors 'self'" in dict(headers)["Content-Security-Policy"]
                headers.append(("X-Frame-Options", "SAMEORIGIN" if frames_itself else "DENY"))
            # The same as in responses that gunicorn sends by itself. Flask-CORS answers preflights.
            is_open = allows_any_origin and "Cross-Origin-Resource-Policy" not in names
            if is_open and method != "OPTIONS":
                headers += response_headers.CORS_FOR_ALL
            seconds = time.perf_counter() - began_at
            self._log_request(method, code, seconds)
            if self._metrics:
                self._metrics.count(method, code, seconds)
            return start_response(status, headers, exc_info)

        return self._application(environ, start)

    def _log_request(self, method: str, status: int, seconds: float) -> None:
        log.info(
            "request",
            method=method,
            # The rule, because paths and queries may contain tokens of links and state.
            route=request.url_rule.rule if request.url_rule else None,
            status=status,
            milliseconds=round(seconds * 1000, 1),
            ip=g.client["ip"],
            user_id=g.user_id or (g.subject and g.subject["user_id"]),
            error_code=g.refused_because,
        )


def register(app: Flask, settings: Settings) -> None:
    app.before_request(_begin)
    app.after_request(_cors(settings))
    if proxies := settings.trusted_proxies:
        app.wsgi_app = ProxyFix(app.wsgi_app, x_for=proxies, x_proto=proxies)  # type: ignore[method-assign]
    app.wsgi_app = Edge(app.wsgi_app, app.extensions[EXTENSION])  # type: ignore[method-assign]


def log_context() -> dict[str, str]:
    """Return the members added to every log event of a request."""
    try:
        return {"request_id": g.request_id}
    except (RuntimeError, AttributeError):
        return {}


def _metrics(parts: Latchkey) -> Any:
    """Return the request counter of this worker, if metrics are on."""
    if parts.settings.metrics_bind is None or METRICS_DIRECTORY not in os.environ:
        return None
    from auth.web.request_metrics import RequestMetrics

    return RequestMetrics(parts)


def for_no_other_origin(response: Response) -> Response:
    """Remove the response from CORS. A hook for the end of a blueprint's requests."""
    # Flask-CORS adds its headers to errors before this hook, and to other responses after it unless marked.
    for name in [name for name, _ in response.headers if name.startswith("Access-Control-")]:
        del response.headers[name]
    setattr(response, FLASK_CORS_EVALUATED, True)
    response.headers["Cross-Origin-Resource-Policy"] = "same-origin"
    return response


def _begin() -> None:
    environ = request.environ
    request_id = environ.get("HTTP_X_REQUEST_ID", "")
    g.request_id = request_id if _REQUEST_ID.fullmatch(request_id) else str(uuid.uuid4())
    ip, network, is_public = networks.locate(environ.get("REMOTE_ADDR", ""))
    g.client = {
        "ip": ip,
        "network": network,
        "user_agent": environ.get("HTTP_USER_AGENT", "")[:_MAX_USER_AGENT] or None,
    }
    if not is_public and not _FORWARDED.isdisjoint(environ) and not latchkey.settings.trusted_proxies:
        _warn_about_proxy()
    # RFC 9112, section 3.2. gunicorn joins repeated headers with commas.
    host, is_optional = environ.get("HTTP_HOST"), environ["SERVER_PROTOCOL"] == "HTTP/1.0"
    if not _HOST.fullmatch(host or "") and not (host is None and is_optional):
        raise ApiError("http.validation_failed", "Host: must be one host")
    refuse_body()


@functools.cache
def _warn_about_proxy() -> None:
    log.warning(
        "proxy_not_trusted",
        reason="a client on this network sends X-Forwarded-For: "
        "if it is your proxy, set AUTH_TRUSTED_PROXIES to 1",
    )


def _allows_any_origin(settings: Settings) -> bool:
    return settings.cors_origins == ("*",)


def _cors(settings: Settings) -> Callable[[Response], Response]:
    for_allowed = _with_cors(list(settings.cors_origins), _CORS_ALLOWED)
    for_any = _with_cors("*", "*")
    adds_to_all = _allows_any_origin(settings)

    def add(response: Response) -> Response:
        if (adds_to_all and request.method != "OPTIONS") or request.path in _WITHOUT_CORS:
            return response
        # Not the current route, which another view may have answered.
        view = current_app.view_functions.get(request.endpoint or "")
        return (for_any if view and route_of(view).any_origin else for_allowed)(response)

    return add


def _with_cors(origins: str | list[str], request_headers: str | list[str]) -> Callable[[Response], Response]:
    with_cors: Callable[[Response], Response] = cross_origin(
        origins=origins,
        allow_headers=request_headers,
        expose_headers=response_headers.CORS_EXPOSED,
        send_wildcard=True,
        max_age=3600,
        automatic_options=False,
    )(lambda response: response)
    return with_cors
