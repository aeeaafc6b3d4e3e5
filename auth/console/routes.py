from flask import Blueprint, Flask

from auth.console import access, audit, messages, overview, user, user_acts, users, webhooks
from auth.settings import Settings

blueprint = Blueprint("console", __name__)
for _section in (overview, user, user_acts, users, audit, webhooks, messages):
    blueprint.register_blueprint(_section.blueprint)
access.register_in(blueprint)


def register(app: Flask, settings: Settings) -> None:
    if settings.console:
        app.register_blueprint(blueprint)
