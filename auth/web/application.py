"""Flask's application, request and response, with bounded bodies and JSON."""

from collections.abc import Sequence
from contextlib import suppress
from typing import Any, cast
from urllib.parse import quote
from wsgiref.types import WSGIEnvironment

from flask import Flask, Request, Response, send_from_directory
from flask.json.provider import DefaultJSONProvider
from jinja2 import FileSystemLoader
from werkzeug.datastructures import Headers, MultiDict
from werkzeug.exceptions import NotFound
from werkzeug.routing import MapAdapter

from auth.web.request_context import RequestContext, g

FORM = "application/x-www-form-urlencoded"
MAX_FIELDS = 100
_VISIBLE = "".join(map(chr, range(0x21, 0x7F)))


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

    def response(self, *args: Any, **kwargs: Any) -> Response:
        return JsonResponse(self.dumps(self._prepare_response_obj(args, kwargs)))


class Application(Flask):
    request_class = BoundedRequest
    json_provider_class = JsonProvider
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
    # Not Flask's: its page repeats the tokens. After a form, browsers that leave for another website get a
    # page instead: see auth/web/html/leaving.py.
    return Redirect(url, status)


class JsonResponse(Response):
    """A response whose body is JSON already."""

    default_mimetype = "application/json"
