"""The application factory. Nothing is decided here."""

from typing import Any

from flask import Flask

from auth import commands, logs, settings, webhook_listener
from auth.context import EXTENSION, Latchkey
from auth.delivery import commands as delivery_commands
from auth.delivery.events import GIVE_UP
from auth.delivery.worker import Deliverer
from auth.net.redirects import AllowList
from auth.operations.embedded_postgres import running_url
from auth.passwords.hashing import Passwords
from auth.providers.client import Provider
from auth.settings import Settings
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
    logs.configure(config)
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


def constants(config: Settings) -> dict[str, Any]:
    """Return what statements ask of this deployment, under the names by which they declare it."""
    return {
        "audience": config.jwt_audience,
        "refresh_token_lifetime": config.refresh_token_lifetime,
        "session_timebox": config.session_timebox,
        "reuse_interval": config.refresh_reuse_interval,
        "rotation": config.refresh_token_rotation,
        "refresh_limit": config.rate_limit_refresh.amount if config.rate_limits_enabled else None,
        "refresh_limit_seconds": config.rate_limit_refresh.get_expiry(),
        "sessions_per_user": config.sessions_per_user,
        "audit_retention": config.audit_retention,
        "give_up": GIVE_UP,
        "reauthentication_age": config.reauthentication_age,
        "email_confirm_required": config.email_confirm_required,
        "phone_confirm_required": config.phone_confirm_required,
    }


def _make_parts(config: Settings) -> Latchkey:
    database_url = config.database_url or running_url(config.state_dir)
    db = Database(database_url, size=size_for(config.threads), prepare=config.db_prepare, constants=constants(config), origin=audit.origin)
    sealer = keys.Sealer(keys.derive(config.secret_key, "outbox"))
    return Latchkey(
        settings=config,
        db=db,
        access_tokens=AccessTokens(config),
        refresh_tokens=RefreshTokens(config.secret_key),
        passwords=Passwords(config),
        sealer=sealer,
        codes=Codes(config.secret_key),
        redirects=AllowList(config.site_url, config.redirect_allow_list),
        deliverer=Deliverer(config, db, sealer),
        providers={name: Provider(name, provider, config.base_url) for name, provider in config.providers.items()},
    )
