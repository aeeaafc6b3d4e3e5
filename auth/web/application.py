"""Flask, without what this service has no use for and each request would pay for."""

import io
from collections.abc import Callable, Iterable
from typing import IO, Any
from wsgiref.types import StartResponse, WSGIEnvironment

from flask import Flask, Request, Response
from werkzeug.exceptions import ClientDisconnected
from werkzeug.routing import MapAdapter
from werkzeug.utils import cached_property


class BoundedRequest(Request):
    """A request whose body is read in one piece, where the server knows where it ends, as gunicorn does. Werkzeug would read it bit by bit."""

    @cached_property
    def stream(self) -> IO[bytes]:
        """The body, as far as `MAX_CONTENT_LENGTH`. Raises `ClientDisconnected` 400."""
        if "wsgi.input_terminated" not in self.environ:
            return super().stream
        try:
            return io.BytesIO(self.environ["wsgi.input"].read(self.max_content_length))
        except OSError:
            raise ClientDisconnected from None

    @cached_property
    def mimetype(self) -> str:
        """The media type of the body, which has mostly nothing beside it to be taken apart."""
        sent = self.environ.get("CONTENT_TYPE", "")
        return sent if sent == "application/json" else super().mimetype


class Application(Flask):
    """Flask for an application whose views are no coroutines, and whose paths mean the same at every host."""

    request_class = BoundedRequest

    def ensure_sync(self, func: Callable[..., Any]) -> Callable[..., Any]:
        """Return a view or hook as it is; Flask would look at each, for each request, for one that is a coroutine."""
        return func

    def create_url_adapter(self, request: Request | None) -> MapAdapter | None:
        """Return what finds the view of a request, by its path and method alone; Flask would take the host apart, twice.

        It can't tell of other URLs: nobody asks, and no path redirects to another.
        """
        if request is None:
            return super().create_url_adapter(request)
        return MapAdapter(self.url_map, "", "/", "", request.scheme, request.path, request.method)


class JsonResponse(Response):
    """A response of JSON that is there as text, as Postgres has made it or `json.dumps`."""

    default_mimetype = "application/json"

    def __call__(self, environ: WSGIEnvironment, start_response: StartResponse) -> Iterable[bytes]:
        """Answer. Its headers are right as they are: it has a body, and leads nowhere. Werkzeug would copy them to look."""
        start_response(self.status, self.headers.to_wsgi_list())
        return () if environ["REQUEST_METHOD"] == "HEAD" else self.iter_encoded()
