"""Customers' sign-in: OpenID providers in the database, each for the addresses of its own domains."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from auth.extensions import Extension

if TYPE_CHECKING:
    from flask import Blueprint, Flask

    from auth.core.providers.client import Provider


class Sso(Extension):
    def init_app(self, app: "Flask") -> None:
        from auth.extensions.sso import routes

        app.register_blueprint(routes.blueprint)

    def find_provider(self, name: str) -> "Provider | None":
        from auth.extensions.sso import finding

        return finding.find(name)

    def provider_of(self, email: str) -> str | None:
        from auth.extensions.sso import finding

        return finding.provider_of(email)

    def sections(self) -> "Sequence[Blueprint]":
        from auth.extensions.sso import console

        return (console.blueprint,)

    def navigation(self) -> Sequence[tuple[int, str, str]]:
        return ((35, "console/providers", "Providers"),)

    @staticmethod
    def commands() -> Mapping[str, str]:
        return {"providers": "auth.extensions.sso.command"}


EXTENSION = Sso
