"""The documentation as HTML: the guides in docs/, and the HTTP API from openapi.yaml."""

from auth.extensions import Extension


class Docs(Extension):
    api = ("routes",)


EXTENSION = Docs
