"""The application factory. Nothing is decided here."""

from flask import Flask

from auth import commands, logs, settings, webhook_listener
from auth.context import EXTENSION, Latchkey
from auth.delivery import commands as delivery_commands
from auth.net.redirects import AllowList
from auth.operations.embedded_postgres import running_url
from auth.passwords.hashing import Passwords
from auth.providers.client import Provider
from auth.settings import Settings
from auth.settings.constants import statement_constants
from auth.tokens import keys
from auth.tokens.access_tokens import AccessTokens
from auth.tokens.one_time import Codes
from auth.tokens.refresh_tokens import RefreshTokens
from auth.views import (
    admin_links,
    admin_users,
    audit_log,
    dev_inbox,
    identities,
    introspect,
    oauth,
    passwordless,
    service,
    sessions,
    signup,
    token,
    user,
    verify,
    webhooks,
)
from auth.web import audit, errors, limits, wire
from auth.web.application import Application
from sql import Database
from sql.pool import size_for

BLUEPRINTS = (
    *(service, signup, token, passwordless, oauth, identities, verify, user, sessions, introspect),
    *(admin_users, admin_links, audit_log, webhooks, dev_inbox),
)


def create_app(config: Settings | None = None) -> Flask:
    """Return the WSGI application. Raises `SettingsError`."""
    config = config or settings.load()
    logs.configure(config, wire.request_context)
    app = Application("auth")
    app.url_map.merge_slashes = False
    app.json.sort_keys = False  # type: ignore[attr-defined]
    app.config["MAX_CONTENT_LENGTH"] = wire.MAX_BODY + 1
    app.extensions[EXTENSION] = _make_parts(config)
    errors.register(app)
    wire.register(app, config)
    limits.register(app, config)
    commands.register(app)
    delivery_commands.register(app)
    webhook_listener.register(app)
    for view in BLUEPRINTS:
        app.register_blueprint(view.blueprint)
    return app


def _make_parts(config: Settings) -> Latchkey:
    database_url = config.database_url or running_url(config.state_dir)
    db = Database(database_url, size=size_for(config.threads), prepare=config.db_prepare, constants=statement_constants(config), origin=audit.origin)
    return Latchkey(
        settings=config,
        db=db,
        access_tokens=AccessTokens(config),
        refresh_tokens=RefreshTokens(config.secret_key),
        passwords=Passwords(config),
        sealer=keys.Sealer(keys.derive(config.secret_key, "outbox")),
        codes=Codes(config.secret_key),
        redirects=AllowList(config.site_url, config.redirect_allow_list),
        providers={name: Provider(name, provider, config.base_url) for name, provider in config.providers.items()},
    )
