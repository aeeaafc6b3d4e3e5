from flask import Blueprint, Flask

from auth.pages import access, account, brand, confirm, errors, passwords, profile, sign_in, sign_up
from auth.settings import Settings

blueprint = Blueprint("pages", __name__)
for _pages in (sign_in, sign_up, passwords, account, profile, access, confirm):
    blueprint.register_blueprint(_pages.blueprint)
errors.register_in(blueprint)


def register(app: Flask, settings: Settings) -> None:
    app.register_blueprint(brand.blueprint)
    if settings.pages:
        app.register_blueprint(blueprint)
        errors.register(app)
