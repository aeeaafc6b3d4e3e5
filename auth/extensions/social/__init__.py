"""Signing in with OAuth and OpenID providers."""

from typing import TYPE_CHECKING

from auth.core.settings import Settings

if TYPE_CHECKING:
    from flask import Flask

    from auth.web.context import Lists


def init_lists(lists: "Lists", _settings: Settings) -> None:
    from auth.extensions.social import id_token_grant

    lists.grants["id_token"] = id_token_grant.sign_in


def init_app(app: "Flask") -> None:
    from auth.extensions.social import identities, oauth

    app.register_blueprint(oauth.blueprint)
    app.register_blueprint(identities.blueprint)
