"""API keys, with which programs act for a user."""

from typing import TYPE_CHECKING

from auth.core.settings import Settings

if TYPE_CHECKING:
    from flask import Flask

    from auth.web.context import Lists


def init_lists(lists: "Lists", _settings: Settings) -> None:
    from auth.extensions.api_keys import console, grant, pages

    lists.grants["api_key"] = grant.sign_in_with_api_key
    lists.tokens.append(grant.claims_now)
    lists.pages.append(pages.blueprint)
    lists.next_pages.append(("api-keys", "account/{}"))
    lists.tabs["api_keys"] = pages.shown_keys
    lists.sections.append(console.blueprint)
    lists.user_tabs["api_keys"] = console.keys_of


def init_app(app: "Flask") -> None:
    from auth.extensions.api_keys import routes

    app.register_blueprint(routes.blueprint)
