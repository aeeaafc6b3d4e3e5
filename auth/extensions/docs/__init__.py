"""The documentation as HTML: the guides in docs/, and the HTTP API from openapi.yaml."""

from typing import TYPE_CHECKING

from auth.extensions import Extension

if TYPE_CHECKING:
    from flask import Flask


class Docs(Extension):
    def init_app(self, app: "Flask") -> None:
        from auth.extensions.docs import routes

        app.register_blueprint(routes.blueprint)


EXTENSION = Docs
