"""The OpenID provider: applications that sign users in here (OpenID Connect Core 1.0, OAuth 2.1)."""

from typing import TYPE_CHECKING

from auth.core.settings import Settings

if TYPE_CHECKING:
    from flask import Flask

    from auth.core.tokens.derived_keys import Sealer
    from auth.delivery.senders.sender import Sender
    from auth.web.context import Lists
    from sql import Database


def init_lists(lists: "Lists", settings: Settings) -> None:
    from auth.extensions.openid import consent
    from auth.extensions.openid.api import introspection, metadata
    from auth.extensions.openid.devices import entry
    from auth.extensions.openid.pages import account, console, console_grants, logout
    from auth.extensions.openid.pages import consent as consent_page

    lists.metadata.append(metadata.of_provider)
    lists.introspecting_clients.append(introspection.read_request)
    lists.tokens.append(introspection.claims_now)
    lists.next_pages.append((r"oauth/consent\?authorization_id=[A-Za-z0-9_-]{43}", "{}"))
    lists.next_pages.append((entry.PATHS, "{}"))
    if settings.oauth_client_documents:
        lists.next_pages.append((r"oauth/authorize\?[!-~]+", "{}"))
    lists.waiting.append(consent.behind)
    lists.pages.extend((consent_page.blueprint, logout.blueprint, entry.blueprint))
    lists.sections.append(console.blueprint)
    lists.navigation.append((30, "console/applications", "Applications"))
    lists.tabs["applications"] = account.shown_grants
    lists.user_tabs["applications"] = console_grants.grants_of


def init_app(app: "Flask") -> None:
    from auth.extensions.openid import oauth_errors
    from auth.extensions.openid.api import authorization, clients, grants, openid

    app.register_error_handler(oauth_errors.OAuthError, oauth_errors.answer)
    for view in (grants, clients, authorization, openid):
        app.register_blueprint(view.blueprint)


def senders(settings: Settings, db: "Database | None", sealer: "Sealer | None") -> "dict[str, Sender]":
    """Return the sender of logout tokens, which needs the database."""
    from auth.extensions.openid.backchannel.logout_tokens import CHANNEL, LogoutSender

    return {CHANNEL: LogoutSender(settings, db, sealer)} if db and sealer else {}


def commands() -> dict[str, str]:
    return {"clients": "auth.extensions.openid.command"}
