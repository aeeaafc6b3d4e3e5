from flask import Flask

from auth import logs, settings
from auth.console import routes as console
from auth.context import EXTENSION, make_parts
from auth.pages import routes as pages
from auth.settings import Settings
from auth.views import (
    admin,
    api_keys,
    authorization,
    clients,
    dev_inbox,
    discovery,
    docs,
    factors,
    grants,
    identities,
    introspect,
    oauth,
    openid,
    passkeys,
    passwordless,
    service,
    sessions,
    signup,
    token,
    user,
    verify,
    webhooks,
)
from auth.web import audit, edge, error_handlers, limits
from auth.web.application import Application
from auth.web.routes import LARGEST_BODY

BLUEPRINTS = (
    *(service, discovery, signup, token, passwordless, oauth, passkeys, identities, verify, user, sessions),
    api_keys,
    *(introspect, factors, grants, admin, webhooks, clients, authorization, openid, dev_inbox, docs),
)


def create_app(config: Settings | None = None) -> Flask:
    """Return the WSGI application. Raises `SettingsError`."""
    config = config or settings.load()
    logs.configure(config, edge.log_context)
    app = Application("auth")
    app.url_map.merge_slashes = False
    app.config["MAX_CONTENT_LENGTH"] = LARGEST_BODY + 1
    app.extensions[EXTENSION] = make_parts(config, audit.origin)
    error_handlers.register(app)
    edge.register(app, config)
    limits.register(app, config)
    for view in BLUEPRINTS:
        app.register_blueprint(view.blueprint)
    pages.register(app, config)
    console.register(app, config)
    return app
