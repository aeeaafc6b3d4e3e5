"""Flask's application, request and response, without some work that this service does not need.

The docstring of each override states its gain.
"""

import io
from collections.abc import Callable, Iterable
from typing import IO, Any
from wsgiref.types import StartResponse, WSGIEnvironment

from flask import Flask, Request, Response
from flask.json.provider import DefaultJSONProvider
from werkzeug.datastructures import MultiDict
from werkzeug.exceptions import ClientDisconnected
from werkzeug.formparser import FormDataParser
from werkzeug.routing import MapAdapter
from werkzeug.utils import cached_property

FORM = "application/x-www-form-urlencoded"
_Parsed = tuple[IO[bytes], MultiDict[str, str], MultiDict[str, Any]]


class FormParser(FormDataParser):
    """Parses forms of the type `FORM`. All others, and those over `max_form_memory_size`, are empty.

    A MiB takes up to a second, and error pages read the form before a limit has counted the request.
    """

    def parse(self, stream: IO[bytes], mimetype: str, *args: Any, **kwargs: Any) -> _Parsed:
        if mimetype != FORM or len(body := stream.read()) > (self.max_form_memory_size or 0):
            return stream, self.cls(), self.cls()
        return super().parse(io.BytesIO(body), mimetype, *args, **kwargs)


class BoundedRequest(Request):
    """A request whose body is read in one call: 2 % of a refresh."""

    form_data_parser_class = FormParser

    @cached_property
    def stream(self) -> IO[bytes]:
        """The body, up to `MAX_CONTENT_LENGTH` bytes. Raises `ClientDisconnected`."""
        # Flask's test client does not terminate the input.
        if "wsgi.input_terminated" not in self.environ:
            return super().stream
        try:
            return io.BytesIO(self.environ["wsgi.input"].read(self.max_content_length))
        except OSError:
            raise ClientDisconnected from None


class JsonProvider(DefaultJSONProvider):
    """Writes JSON with the same spaces as Postgres, and in our order."""

    sort_keys = False

    def response(self, *args: Any, **kwargs: Any) -> Response:
        return JsonResponse(self.dumps(self._prepare_response_obj(args, kwargs)))


class Application(Flask):
    """Flask for routes that are the same at every host."""

    request_class = BoundedRequest
    json_provider_class = JsonProvider

    def ensure_sync(self, func: Callable[..., Any]) -> Callable[..., Any]:
        """Return a view without asking whether it is a coroutine: 1 % of GET /user."""
        return func

    def create_url_adapter(self, request: Request | None) -> MapAdapter | None:
        """Return a URL adapter without parsing the host: 3 % of GET /user."""
        if request is None:
            return super().create_url_adapter(request)
        return MapAdapter(self.url_map, "", "/", "", request.scheme, request.path, request.method)


class JsonResponse(Response):
    """A response whose body is JSON already."""

    default_mimetype = "application/json"

    def __call__(self, environ: WSGIEnvironment, start_response: StartResponse) -> Iterable[bytes]:
        """Send the response without copying its headers: 1 % of GET /user."""
        start_response(self.status, self.headers.to_wsgi_list())
        return () if environ["REQUEST_METHOD"] == "HEAD" else self.iter_encoded()
