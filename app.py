from flask import Flask

from auth import wings
from auth.api import (
    admin,
    dev_inbox,
    disabled,
    factors,
    introspect,
    passkeys,
    passwordless,
    service,
    sessions,
    signup,
    token,
    user,
    verify,
    well_known,
)
from auth.core import logs, settings
from auth.core.settings import Settings
from auth.web import audit, edge, html, limits
from auth.web.application import Application
from auth.web.context import EXTENSION, make_parts
from auth.web.declarations import LARGEST_BODY

HOUSE = (
    service, well_known, signup, token, passwordless, passkeys, verify, user, sessions, factors, admin,
    introspect, dev_inbox,
)  # fmt: skip


def create_app(config: Settings | None = None) -> Flask:
    """Return the WSGI application: the house, and the wings that are on. Raises `SettingsError`."""
    config = config or settings.load()
    logs.configure(config, edge.log_context)
    app = Application("auth", static_folder="web/html/static")
    app.show_rooms(["web/html", *wings.on(config)])
    app.url_map.merge_slashes = False
    app.config["MAX_CONTENT_LENGTH"] = LARGEST_BODY + 1
    app.extensions[EXTENSION] = parts = make_parts(config, audit.origin)
    edge.register(app, config)
    limits.register(app, config)
    html.init_app(app, config)
    for view in HOUSE:
        app.register_blueprint(view.blueprint)
    wings.init_app(app, parts)
    for wing, blueprint in disabled.BLUEPRINTS.items():
        if wing not in wings.on(config):
            app.register_blueprint(blueprint)
    return app
