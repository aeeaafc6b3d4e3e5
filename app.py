from flask import Flask

from auth import html, registry
from auth.api import (
    account,
    admin,
    dev_inbox,
    factors,
    introspection,
    links,
    messages,
    passkeys,
    service,
    sessions,
    sign_in,
    sign_up,
    well_known,
)
from auth.core import logs, settings
from auth.core.settings import Settings
from auth.web import audit, edge, limits
from auth.web.application import Application
from auth.web.context import EXTENSION, Latchkey
from auth.web.declarations import LARGEST_BODY

VIEWS = (
    service, well_known, sign_up, sign_in, messages, passkeys, links, account, sessions, factors, admin,
    introspection, dev_inbox,
)  # fmt: skip


def create_app(config: Settings | None = None) -> Flask:
    """Return the WSGI application: the core and the enabled extensions. Raises `SettingsError`."""
    config = config or settings.load()
    logs.configure(config, edge.log_context)
    app = Application("auth", static_folder="html/static")
    app.search_folders(["html", *(f"extensions/{name}" for name in registry.names_on(config))])
    app.url_map.merge_slashes = False
    app.config["MAX_CONTENT_LENGTH"] = LARGEST_BODY + 1
    app.extensions[EXTENSION] = parts = Latchkey(config, audit.origin)
    edge.register(app, config)
    limits.register(app, config)
    html.init_app(app, config)
    for view in VIEWS:
        app.register_blueprint(view.blueprint)
    for extension in parts.extensions:
        extension.init_app(app)
    return app
