"""The OpenID provider: applications that sign users in here (OpenID Connect Core 1.0, OAuth 2.1)."""

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from auth.registry import Extension, Waiting

if TYPE_CHECKING:
    from flask import Flask

    from auth.core.sender import Sender
    from auth.core.tokens.derived_keys import Sealer
    from sql import Database, queries


class OpenId(Extension):
    api = ("api.grants", "api.clients", "api.authorization", "api.openid", "api.registration")
    pages = ("pages.consent", "pages.logout", "pages.device")
    sections = ("pages.console",)
    navigation = ((30, "console/applications", "Applications"),)
    command = "clients"

    def init_app(self, app: "Flask") -> None:
        from auth.extensions.openid.api import errors

        app.register_error_handler(errors.OAuthError, errors.answer)
        super().init_app(app)

    def introspect(self, token: str, client: "queries.SelectClient | None") -> dict[str, Any] | None:
        from auth.extensions.openid import introspection
        from auth.web.context import latchkey

        return introspection.claims_now(latchkey, token, client)

    def introspection_by_client(self) -> "Callable[[], tuple[str, queries.SelectClient]]":
        from auth.extensions.openid.api import openid

        return openid.read_introspection

    def metadata(self) -> Mapping[str, Any]:
        from auth.extensions.openid.api import metadata

        return metadata.of_provider()

    def next_pages(self) -> Sequence[tuple[str, str]]:
        from auth.extensions.openid.pages import device

        consent = (r"oauth/consent\?authorization_id=[A-Za-z0-9_-]{43}", "{}")
        # A client that is a document has no row, so its request begins anew.
        anew = [(r"oauth/authorize\?[!-~]+", "{}")] if self.settings.oauth_client_documents else []
        return [consent, (device.PATHS, "{}"), *anew]

    def waiting_behind(self, next_page: str) -> Waiting | None:
        from auth.extensions.openid import consent
        from auth.web.asked import current_asked

        return consent.behind(current_asked(), next_page)

    def goes_on(self, next_page: str) -> bool:
        from auth.extensions.openid import consent
        from auth.web.asked import current_asked

        return consent.goes_on(current_asked(), next_page)

    def account_tabs(self, person: "queries.SelectPerson") -> Mapping[str, Any]:
        from auth.extensions.openid.pages import account

        return {"applications": account.shown_grants()}

    def user_tabs(self, user_id: str) -> Mapping[str, Any]:
        from auth.extensions.openid.pages import console_grants

        return {"applications": console_grants.grants_of(user_id)}

    def senders(self, db: "Database | None", sealer: "Sealer | None") -> "Mapping[str, Sender]":
        """Return the sender of logout tokens, which needs the database."""
        from auth.extensions.openid.logout_tokens import CHANNEL, LogoutSender

        return {CHANNEL: LogoutSender(self.settings, db, sealer)} if db and sealer else {}


EXTENSION = OpenId
