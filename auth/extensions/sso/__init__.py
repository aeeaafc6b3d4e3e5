"""Customers' sign-in: OpenID providers in the database, each for the addresses of its own domains."""

from typing import TYPE_CHECKING

from auth.core.settings import Settings

if TYPE_CHECKING:
    from flask import Flask

    from auth.web.context import Lists


def init_lists(lists: "Lists", _settings: Settings) -> None:
    from auth.extensions.sso import console, finding

    lists.providers.append(finding.find)
    lists.entrances.append(finding.entrance)
    lists.sections.append(console.blueprint)
    lists.navigation.append((35, "console/providers", "Providers"))


def init_app(app: "Flask") -> None:
    from auth.extensions.sso import routes

    app.register_blueprint(routes.blueprint)


def commands() -> dict[str, str]:
    return {"providers": "auth.extensions.sso.command"}
