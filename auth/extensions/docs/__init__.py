"""The documentation as HTML: the guides in docs/, and the HTTP API from openapi.yaml."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from flask import Flask


def init_app(app: "Flask") -> None:
    from auth.extensions.docs import routes

    app.register_blueprint(routes.blueprint)
