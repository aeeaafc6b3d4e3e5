"""Signing in with OAuth and OpenID providers."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from flask import Flask


def init_app(app: "Flask") -> None:
    from auth.social import identities, oauth

    app.register_blueprint(oauth.blueprint)
    app.register_blueprint(identities.blueprint)
