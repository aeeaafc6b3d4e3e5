from flask import Flask

from auth.api import (
    admin,
    dev_inbox,
    factors,
    passkeys,
    passwordless,
    service,
    sessions,
    signup,
    token,
    user,
    verify,
)
from auth.api_keys import routes as api_keys
from auth.console import routes as console
from auth.core import logs, settings
from auth.core.settings import Settings
from auth.docs import routes as docs
from auth.openid.api import authorization, clients, discovery, grants, introspect, openid
from auth.pages import routes as pages
from auth.social import identities, oauth
from auth.web import audit, edge, error_handlers, limits
from auth.web.application import Application
from auth.web.context import EXTENSION, make_parts
from auth.web.routes import LARGEST_BODY
from auth.webhooks import routes as webhooks

BLUEPRINTS = (
    *(service, discovery, signup, token, passwordless, oauth, passkeys, identities, verify, user, sessions),
    api_keys,
    *(introspect, factors, grants, admin, webhooks, clients, authorization, openid, dev_inbox, docs),
)


def create_app(config: Settings | None = None) -> Flask:
    """Return the WSGI application. Raises `SettingsError`."""
    config = config or settings.load()
    logs.configure(config, edge.log_context)
    app = Application("auth", template_folder="web/html/templates", static_folder="web/html/static")
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
