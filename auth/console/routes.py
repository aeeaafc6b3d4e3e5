from flask import Blueprint, Flask

from auth.console import access, overview, users
from auth.settings import Settings

blueprint = Blueprint("console", __name__)
for _section in (overview, users):
    blueprint.register_blueprint(_section.blueprint)
access.register_in(blueprint)


def register(app: Flask, settings: Settings) -> None:
    if settings.console:
        app.register_blueprint(blueprint)
