"""The outermost steps of each request: request ids, client addresses, origins, headers, the log line."""

import functools
import re
import time
import uuid
from collections.abc import Callable, Iterable
from typing import Any
from wsgiref.types import StartResponse, WSGIApplication, WSGIEnvironment

import structlog
from flask import Flask, Response, has_request_context, request
from werkzeug.middleware.proxy_fix import ProxyFix

from auth.core.logs import ThrottledLog
from auth.core.net import networks
from auth.core.settings import Settings
from auth.web import audit, current_g, current_request, dialect, g, limits
from auth.web.context import latchkey
from auth.web.declarations import Route
from auth.web.errors import ApiError
from auth.web.input import refuse_body

_Write = Callable[[bytes], object]

log = structlog.get_logger()
_origin_log = ThrottledLog("origin_not_allowed")

PREFIX = "/auth/v1"
SECURITY = (("X-Content-Type-Options", "nosniff"), ("Referrer-Policy", "no-referrer"))
# Everything except pages has this policy: data, styles, scripts and redirects.
NO_PAGE = ("Content-Security-Policy", "default-src 'none'; frame-ancestors 'none'")
_DIALECT_HEADER = "HTTP_X_SUPABASE_API_VERSION"
# The key in the environ for whether the request is in the dialect of the Supabase clients.
_IN_DIALECT = "latchkey.in_dialect"
_FORWARDED_HEADERS = {"HTTP_X_FORWARDED_FOR", "HTTP_X_FORWARDED_PROTO"}
_MAX_USER_AGENT = 512
# Headers that routes without a limit parse item by item: 32 KB take up to 58 ms, the first KB 2 ms.
_LIST_HEADERS = {"HTTP_ACCEPT", "HTTP_ACCEPT_ENCODING", "CONTENT_TYPE", "HTTP_IF_MATCH", "HTTP_IF_NONE_MATCH"}
_LONGEST_LIST = 1024
_REQUEST_ID = re.compile(r"[A-Za-z0-9._-]{8,128}")
_HOST = re.compile(r"[A-Za-z0-9._~:\[\]-]+")
_LONGEST_ORIGIN = 255
# Browsers open these; no page reads them by a script (RFC 9700, section 2.6).
_WITHOUT_CORS = re.compile(r"/(authorize|(providers/[^/]+/)?callback|oauth/(authorize|continue))")
_ALLOWED_HEADERS = "apikey, authorization, content-type, x-client-info, x-request-id, x-supabase-api-version"
# Further header names in a preflight are echoed.
_NAMES_OF_HEADERS = re.compile(r"[!#$%&'+.^_`|~0-9A-Za-z-]+(?:[ \t]*,[ \t]*[!#$%&'+.^_`|~0-9A-Za-z-]+)*")
_LONGEST_NAMES = 1024
_EXPOSED_HEADERS = (
    "X-RateLimit-Limit, X-RateLimit-Remaining, X-RateLimit-Reset, "
    f"Retry-After, WWW-Authenticate, X-Request-Id, X-Total-Count, Link, {dialect.VERSION_HEADER}"
)
# This header of a response hides it from other origins.
_RESOURCE_POLICY = "Cross-Origin-Resource-Policy"


class Edge:
    """WSGI middleware that serves every path under `/auth/v1` too, adds headers, and logs the request."""

    def __init__(self, application: WSGIApplication) -> None:
        self._application = application
        # Bind the logger once: the proxy would make one for each line.
        self._log = log.bind()
        # Gets the method, the status and the seconds of each request, if metrics are on.
        self.count: Callable[[str, int, float], None] | None = None

    def __call__(self, environ: WSGIEnvironment, start_response: StartResponse) -> Iterable[bytes]:
        _find_route(environ)
        for name in _LIST_HEADERS & environ.keys():
            environ[name] = environ[name][:_LONGEST_LIST]
        for name in _FORWARDED_HEADERS & environ.keys():
            # No address has a quotation mark. A client's single one would hide what proxies append.
            environ[name] = environ[name].replace('"', "")
        began_at = time.perf_counter()

        # Flask calls this within its request context.
        def start(status: str, headers: list[tuple[str, str]], exc_info: Any = None) -> _Write:
            g, rule = current_g(), current_request().url_rule
            method, code = environ["REQUEST_METHOD"], int(status[:3])
            names = {name for name, _ in headers}
            headers += [*SECURITY, ("X-Request-Id", g.request_id), *limits.headers(code)]
            if "Cache-Control" not in names:
                headers.append(("Cache-Control", "no-store"))
            if "Content-Security-Policy" in names:
                # Some browsers and scanners do not support frame-ancestors.
                frames_itself = "frame-ancestors 'self'" in dict(headers)["Content-Security-Policy"]
                headers.append(("X-Frame-Options", "SAMEORIGIN" if frames_itself else "DENY"))
            else:
                headers.append(NO_PAGE)
            seconds = time.perf_counter() - began_at
            if g.is_logged:
                self._log.info(
                    "request",
                    method=method,
                    # Log the rule: paths and queries may contain tokens of links and state.
                    route=rule.rule if rule else None,
                    status=code,
                    milliseconds=round(seconds * 1000, 1),
                    ip=g.client["ip"],
                    user_id=g.user_id or (g.subject and g.subject["user_id"]),
                    error_code=g.refused_because,
                )
            if self.count:
                self.count(method, code, seconds)
            return start_response(status, headers, exc_info)

        return self._application(environ, start)


def register(app: Flask, settings: Settings) -> None:
    app.before_request(functools.partial(_begin, app))
    app.after_request(_end)
    if proxies := settings.trusted_proxies:
        app.wsgi_app = ProxyFix(app.wsgi_app, x_for=proxies, x_proto=proxies)  # type: ignore[method-assign]
    app.wsgi_app = Edge(app.wsgi_app)  # type: ignore[method-assign]


def log_context() -> dict[str, str]:
    """Return the members added to every log event of a request."""
    return {"request_id": current_g().request_id} if has_request_context() else {}


def hide_from_other_origins(response: Response) -> Response:
    """Hide a response from other origins. Blueprints call it after each request."""
    response.headers[_RESOURCE_POLICY] = "same-origin"
    return response


def _find_route(environ: WSGIEnvironment) -> None:
    """Serve every path under the prefix too, and with the trailing slash of the client for Kotlin."""
    path, root = environ["PATH_INFO"], environ.get("SCRIPT_NAME", "")
    if path == PREFIX or path.startswith(PREFIX + "/"):
        path, root = path[len(PREFIX) :] or "/", root + PREFIX
    environ[_IN_DIALECT] = _DIALECT_HEADER in environ or root.endswith(PREFIX)
    if environ[_IN_DIALECT] and len(path) > 1 and path.endswith("/") and not path.endswith("//"):
        path = path[:-1]
    environ["PATH_INFO"], environ["SCRIPT_NAME"] = path, root


def _begin(app: Flask) -> Response | None:
    g, request = current_g(), current_request()
    environ = request.environ
    g.route = getattr(app.view_functions.get(request.endpoint or ""), "route", g.route)
    request_id = environ.get("HTTP_X_REQUEST_ID", "")
    g.request_id = request_id if _REQUEST_ID.fullmatch(request_id) else str(uuid.uuid4())
    ip, network, is_public = networks.locate(environ.get("REMOTE_ADDR", ""))
    g.client = {
        "ip": ip,
        "network": network,
        "user_agent": environ.get("HTTP_USER_AGENT", "")[:_MAX_USER_AGENT] or None,
    }
    if not is_public and not _FORWARDED_HEADERS.isdisjoint(environ) and not latchkey.settings.trusted_proxies:
        _warn_about_proxy()
    # Begin before the first refusal: the dialect translates it.
    if environ[_IN_DIALECT]:
        dialect.begin()
    # RFC 9112, section 3.2. gunicorn joins repeated headers with commas.
    host, is_optional = environ.get("HTTP_HOST"), environ["SERVER_PROTOCOL"] == "HTTP/1.0"
    if not _HOST.fullmatch(host or "") and not (host is None and is_optional):
        raise ApiError("http.validation_failed", "Host: must be one host")
    refuse_foreign_page()
    refuse_body()
    # After this answer to its preflight, the browser sends the request, and shows the 404.
    return Response() if request.routing_exception and _is_preflight() else None


@functools.cache
def _warn_about_proxy() -> None:
    log.warning(
        "proxy_not_trusted",
        reason="a client on this network sends X-Forwarded-For: "
        "if it is your proxy, set AUTH_TRUSTED_PROXIES to 1",
    )


def refuse_foreign_page() -> None:
    """Refuse requests that a page of another origin makes a browser send (rule 32 of docs/rules.md)."""
    request, route = current_request(), current_g().route
    environ = request.environ
    site, origin = environ.get("HTTP_SEC_FETCH_SITE"), environ.get("HTTP_ORIGIN")
    # Programs and old browsers do not send Sec-Fetch-Site. Forms of our own pages have the origin null.
    is_ours = site in ("same-origin", "none") or (site is None and origin in (None, "null"))
    # A prefetch looks as if the user opened the URL.
    is_prefetch = "HTTP_SEC_PURPOSE" in environ
    if (is_ours or _opens_page(route)) and not is_prefetch:
        return
    is_named = origin is not None and origin in latchkey.origins and not is_prefetch
    # Pages send these only if the preflight allows it.
    authorization = environ.get("HTTP_AUTHORIZATION", "")
    has_credentials = "HTTP_APIKEY" in environ or authorization[:7].lower() == "bearer "
    if not (is_named or has_credentials or route.any_origin or request.method == "OPTIONS"):
        _log_refusal(origin)
        raise ApiError("origin_not_allowed", "Origin: must be named by AUTH_CORS_ORIGINS")


def _opens_page(route: Route) -> bool:
    """Whether another site opens a page of ours, in the top window or in a permitted frame."""
    is_safe, environ = request.method in ("GET", "HEAD"), request.environ
    # An old browser sends no such headers, and sends the origin with forms and requests of scripts.
    mode, dest = environ.get("HTTP_SEC_FETCH_MODE"), environ.get("HTTP_SEC_FETCH_DEST")
    if is_safe and mode == "navigate" and dest != "document":
        return route.answers_frames and request.args.getlist("prompt") == ["none"]
    is_window = (mode, dest) == ("navigate", "document")
    return is_window if is_safe else route.takes_foreign_forms and (is_window or mode is None)


def _end(response: Response) -> Response:
    """Record a refusal, and add the headers of CORS, never with credentials."""
    g, request = current_g(), current_request()
    if g.refused_because:
        audit.record_refusal()
    headers, is_public = response.headers, g.route.any_origin
    origin = "*" if is_public else request.environ.get("HTTP_ORIGIN")
    if origin is None or _RESOURCE_POLICY in headers or _WITHOUT_CORS.fullmatch(request.path):
        return response
    if is_public or _is_allowed(response, origin):
        headers["Access-Control-Allow-Origin"] = origin
        headers["Access-Control-Expose-Headers"] = _EXPOSED_HEADERS
        if request.method == "OPTIONS":
            names = request.headers.get("Access-Control-Request-Headers", "")
            # Headers that clients add grant nothing.
            is_good = len(names) <= _LONGEST_NAMES and _NAMES_OF_HEADERS.fullmatch(names)
            headers["Access-Control-Allow-Headers"] = (
                names if is_good else "" if is_public else _ALLOWED_HEADERS
            )
            headers["Access-Control-Allow-Methods"] = "DELETE, GET, HEAD, OPTIONS, PATCH, POST, PUT"
            headers["Access-Control-Max-Age"] = "3600"  # seconds
    return response


def _is_allowed(response: Response, origin: str) -> bool:
    response.vary.add("Origin")
    # Administrative routes are only for origins that the operator lists.
    origins = latchkey.origins
    is_allowed = origins.lists(origin) if g.route.is_administrative else origin in origins
    if _is_preflight() and not is_allowed:
        _log_refusal(origin)
    return is_allowed


def _is_preflight() -> bool:
    return request.method == "OPTIONS" and "Access-Control-Request-Method" in request.headers


def _log_refusal(origin: str | None) -> None:
    reason = "no setting names this origin: add it to AUTH_CORS_ORIGINS"
    _origin_log.count(origin=(origin or "")[:_LONGEST_ORIGIN], reason=reason)
