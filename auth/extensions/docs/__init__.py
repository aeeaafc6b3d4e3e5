"""The documentation as HTML: the guides in docs/, and the HTTP API from openapi.yaml."""

from auth.registry import Extension


class Docs(Extension):
    api = ("routes",)


EXTENSION = Docs
