from flask import Blueprint, Flask

from auth.console import (
    access,
    api_keys,
    applications,
    audit,
    bulk,
    export,
    message_preview,
    messages,
    overview,
    user,
    user_acts,
    users,
    webhooks,
)
from auth.core.settings import Settings

_SECTIONS = (overview, user, user_acts, users, bulk, export, audit, webhooks, messages, message_preview)


def register(app: Flask, settings: Settings) -> None:
    if not settings.console:
        return
    console = Blueprint("console", __name__, template_folder="templates")
    optional = {applications: settings.oauth_server, api_keys: settings.api_keys}
    for section in (*_SECTIONS, *(section for section, is_on in optional.items() if is_on)):
        console.register_blueprint(section.blueprint)
    access.register_in(console)
    app.register_blueprint(console)
