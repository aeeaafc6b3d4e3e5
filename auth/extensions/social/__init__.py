"""Signing in with OAuth and OpenID providers."""

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from auth.extensions import Extension

if TYPE_CHECKING:
    from flask import Flask
    from flask.typing import ResponseReturnValue


class Social(Extension):
    def init_app(self, app: "Flask") -> None:
        from auth.extensions.social import identities, oauth

        app.register_blueprint(oauth.blueprint)
        app.register_blueprint(identities.blueprint)

    def grants(self) -> "Mapping[str, Callable[[], ResponseReturnValue]]":
        from auth.extensions.social import id_token_grant

        return {"id_token": id_token_grant.sign_in}


EXTENSION = Social
