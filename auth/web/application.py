"""The Flask application, and the responses of JSON that is there as text."""

from flask import Flask, Request, Response
from werkzeug.routing import MapAdapter


class Application(Flask):
    """Flask for routes that are the same at every host."""

    def create_url_adapter(self, request: Request | None) -> MapAdapter | None:
        """Return what matches the route of a request.

        Flask's own adapter parses the host twice, which takes 3 % of GET /user and of a refresh.
        """
        if request is None:
            return super().create_url_adapter(request)
        return MapAdapter(self.url_map, "", "/", "", request.scheme, request.path, request.method)


class JsonResponse(Response):
    """A response whose body is JSON already, made by Postgres or by `json.dumps`."""

    default_mimetype = "application/json"
