"""Flask's application, `g`, request and responses, with types, bounded bodies and JSON."""

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Literal, cast
from urllib.parse import quote, urlencode
from wsgiref.types import StartResponse, WSGIEnvironment

import flask
from flask import Flask, Request, Response, json, request, send_from_directory
from flask.json.provider import DefaultJSONProvider
from flask.sessions import NullSession, SessionInterface
from flask.typing import ResponseReturnValue
from flask_limiter import RequestLimit
from jinja2 import FileSystemLoader
from werkzeug.datastructures import Headers, MultiDict
from werkzeug.exceptions import NotFound
from werkzeug.routing import MapAdapter

from auth.core.tokens.access_tokens import Caller, KeyCaller
from auth.core.tokens.client_tokens import ClientCaller
from auth.web.declarations import Level, RefusalEntry, Route, Scope

FORM = "application/x-www-form-urlencoded"
MAX_FIELDS = 100
_VISIBLE = "".join(map(chr, range(0x21, 0x7F)))

_NO_ROUTE = Route()

# An administrative key acts for the service role, and may do less.
Actor = Literal["anonymous", "service_role", "admin_key", "user"]


@dataclass(frozen=True)
class AdminKeyCaller:
    """The administrative key of a request, and the scope that its route demands."""

    id: str
    name: str
    scope: Scope | None


@dataclass(frozen=True)
class LimitWindow:
    """A limit that counted a request, with `seconds` until it is reset."""

    amount: int
    remaining: int
    seconds: float


class Noted:
    """The notes of flows for the log line, the audit log and the headers of the response."""

    # Whom a refusal concerns, as parameters of `record_refusal`.
    subject: dict[str, Any] | None = None
    # Limits that Flask-Limiter does not count.
    windows: tuple[LimitWindow, ...] = ()
    # On this machine, the `redirect_to` that is not allowed, without query and fragment.
    refused_target: str | None = None

    def note(
        self,
        *,
        user_id: str | None = None,
        address: str | None = None,
        token_hash: bytes | None = None,
        **details: object,
    ) -> dict[str, Any]:
        """Note the user and more details of a request, in case it is refused, and return them."""
        details = (self.subject["details"] if self.subject else {}) | details
        self.subject = {"user_id": user_id, "address": address, "token_hash": token_hash, "details": details}
        return self.subject

    def add_window(self, window: LimitWindow) -> None:
        """Add rate-limit headers for a limit that Flask-Limiter does not count."""
        self.windows += (window,)


# Defaults are attributes of the class: an `__init__` would set all of them at each request.
@dataclass(init=False)
class RequestContext(Noted):
    """The attributes of `g`. Those without a default exist once they are set."""

    # auth/web/edge.py sets this, and `request_id`, at the beginning of each request. `ip`, `network` and
    # `user_agent` of the client are parameters of statements.
    client: dict[str, Any]
    # A guard sets these. `caller` exists if the actor is a user.
    caller: Caller
    client_caller: ClientCaller
    key_caller: KeyCaller | None = None
    # Set if the actor is an administrative key.
    admin_key: AdminKeyCaller | None = None
    user_id: str | None = None
    actor: Actor = "anonymous"
    level: Level = Level.SESSION
    request_id: str = ""
    # The declarations of the view, or of another view that answers instead.
    route: Route = _NO_ROUTE
    # The `BrowserSession`, in the console.
    administrator: Any = None
    # The cookie of the browser's session that this request has begun or changed, which its response sets.
    session_cookie: str | None = None
    in_dialect: bool = False
    json_body: dict[str, Any] | None = None
    # Whether the log gets a line for this request.
    is_logged: bool = True
    # The audit log records the error_code of a refusal, and its name, if it is not the route's.
    refused_because: str | None = None
    refusal: RefusalEntry | None = None
    # The rate-limit headers are made of these: the rows of Flask-Limiter by key, the limits that
    # `limits.count` has counted, and whether Redis did not respond.
    limit_counts: dict[str, Any] | None = None
    counted: tuple[RequestLimit, ...] = ()
    is_uncounted: bool = False

    def admit(self, caller: Caller) -> None:
        self.actor, self.caller, self.user_id = "user", caller, caller.user_id


g = cast("RequestContext", flask.g)
# The objects behind Flask's proxies, for the steps of every request: an attribute of a proxy takes twenty
# times as long.
current_g = cast("Callable[[], RequestContext]", flask.g._get_current_object)
current_request = cast("Callable[[], flask.Request]", flask.request._get_current_object)  # type: ignore[attr-defined]


def answered_by(view: Callable[..., ResponseReturnValue], *args: object) -> ResponseReturnValue:
    """Answer the request with another view, whose declarations apply from now on."""
    g.route = vars(view).get("route", _NO_ROUTE)
    return view(*args)


class BoundedRequest(Request):
    def _load_form_data(self) -> None:
        # Error pages also read forms, even of requests that have no view or that it refused.
        if "form" in vars(self):
            return
        most, is_form = g.route.max_body, g.route.accepts_forms and self.mimetype == FORM
        is_form = is_form and (self.content_length or 0) <= most
        body = self.get_data() if is_form else b""
        if is_form and len(body) <= most and body.count(b"&") < MAX_FIELDS:
            super()._load_form_data()
        else:
            vars(self).update(form=MultiDict(), files=MultiDict())


class JsonProvider(DefaultJSONProvider):
    """Writes JSON with the spaces of Postgres, in our order."""

    sort_keys = False

    def response(self, *args: object, **kwargs: object) -> Response:
        return JsonResponse(self.dumps(self._prepare_response_obj(args, kwargs)))


class _NoSessions(SessionInterface):
    """Turns off Flask's sessions, of which each request would make an empty one."""

    _empty = NullSession()

    def open_session(self, app: Flask, request: Request) -> NullSession:
        return self._empty


class Application(Flask):
    request_class = BoundedRequest
    json_provider_class = JsonProvider
    session_interface = _NoSessions()
    app_ctx_globals_class = cast("Any", RequestContext)
    folders: Sequence[str] = ()

    def search_folders(self, folders: Sequence[str]) -> None:
        """Find templates and static files in `templates` and `static` of these folders."""
        self.folders = folders
        self.jinja_loader = FileSystemLoader([f"{self.root_path}/{folder}/templates" for folder in folders])

    def send_static_file(self, filename: str) -> Response:
        for folder in self.folders:
            with suppress(NotFound):
                return send_from_directory(f"{self.root_path}/{folder}/static", filename)
        raise NotFound

    def create_url_adapter(self, request: Request | None) -> MapAdapter | None:
        # No route depends on the host. Werkzeug would parse it, and refuse some.
        if request is None:
            return None
        return MapAdapter(self.url_map, "", "/", "", request.scheme, request.path, request.method)

    def ensure_sync(self, func: Callable[..., Any]) -> Callable[..., Any]:
        # Flask asks each view and each hook whether it is a coroutine. None is.
        return func


class Redirect(Response):
    """A redirect to an unchanged URL, with only control characters, spaces and non-ASCII encoded."""

    def __init__(self, url: str, status: int) -> None:
        super().__init__(status=status, headers={"Location": quote(url, safe=_VISIBLE)})

    def get_wsgi_headers(self, environ: WSGIEnvironment) -> Headers:
        # Werkzeug would rewrite it: app:///path as app:/path, and a host in lower case.
        headers = super().get_wsgi_headers(environ)
        headers["Location"] = self.headers["Location"]
        return headers


def redirect(url: str, status: int = 303) -> Response:
    # The page of Flask's redirect would repeat the tokens. After a form, browsers that leave for another
    # website get a page instead: see auth/html/leaving.py.
    return Redirect(url, status)


class JsonResponse(Response):
    """A response whose body is JSON already, with a status other than 204 and 304."""

    default_mimetype = "application/json"

    def __call__(self, environ: WSGIEnvironment, start_response: StartResponse) -> Iterable[bytes]:
        # Werkzeug copies the headers first, to make Location absolute; these responses have none.
        start_response(self.status, self.headers.to_wsgi_list())
        return () if environ["REQUEST_METHOD"] == "HEAD" else self.iter_encoded()


def paginated(
    items: str, total: int, query: Mapping[str, int], *, name: str = "data", **others: str
) -> Response:
    """Return one page of a list, the member `name`, with the headers X-Total-Count and Link (RFC 8288).

    `items` and `others`, further members, are JSON.
    """
    page, per_page = query["page"], query["per_page"]
    total_pages = math.ceil(total / per_page)
    pagination = {"page": page, "per_page": per_page, "total": total, "total_pages": total_pages}
    members = {name: items, **others, "pagination": json.dumps(pagination)}
    response = JsonResponse("{" + ", ".join(f'"{name}": {value}' for name, value in members.items()) + "}")
    response.headers["X-Total-Count"] = str(total)
    last = max(1, total_pages)
    pages = {"first": 1, "prev": page - 1, "next": page + 1, "last": last}
    # Always include the first and the last page: without the header, clients ignore the total.
    filters = [
        (name, value) for name, value in request.args.items(multi=True) if name not in ("page", "per_page")
    ]
    parameters = urlencode([("per_page", per_page), *filters])
    response.headers["Link"] = ", ".join(
        f'<{request.script_root}{request.path}?page={number}&{parameters}>; rel="{rel}"'
        for rel, number in pages.items()
        if 1 <= number <= last
    )
    return response
