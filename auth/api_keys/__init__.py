"""API keys, with which programs act for a user."""

from typing import TYPE_CHECKING

from auth.core.settings import Settings

if TYPE_CHECKING:
    from flask import Flask

    from auth.web.context import Lists


def init_lists(lists: "Lists", settings: Settings) -> None:
    from auth.api_keys import pages

    lists.pages.append(pages.blueprint)
    if settings.api_keys:
        from auth.api_keys import console

        lists.tabs["api_keys"] = pages.shown_keys
        lists.sections.append(console.blueprint)
        lists.user_tabs["api_keys"] = console.keys_of


def init_app(app: "Flask") -> None:
    from auth.api_keys import routes

    app.register_blueprint(routes.blueprint)
