from flask import Flask

from auth import extensions
from auth.core import logs, settings
from auth.core.settings import Settings
from auth.flows.account import views as user
from auth.flows.admin import views as admin
from auth.flows.dev_inbox import views as dev_inbox
from auth.flows.factors import views as factors
from auth.flows.introspection import views as introspect
from auth.flows.links import views as verify
from auth.flows.messages import views as passwordless
from auth.flows.passkeys import views as passkeys
from auth.flows.service import views as service
from auth.flows.sessions import views as sessions
from auth.flows.sign_in import views as token
from auth.flows.sign_up import views as signup
from auth.flows.well_known import views as well_known
from auth.web import audit, edge, html, limits
from auth.web.application import Application
from auth.web.context import EXTENSION, Latchkey
from auth.web.declarations import LARGEST_BODY

VIEWS = (
    service, well_known, signup, token, passwordless, passkeys, verify, user, sessions, factors, admin,
    introspect, dev_inbox,
)  # fmt: skip


def create_app(config: Settings | None = None) -> Flask:
    """Return the WSGI application: the core and the enabled extensions. Raises `SettingsError`."""
    config = config or settings.load()
    logs.configure(config, edge.log_context)
    app = Application("auth", static_folder="web/html/static")
    app.search_folders(["web/html", *(f"extensions/{name}" for name in extensions.names_on(config))])
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
