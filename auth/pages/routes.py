from flask import Blueprint, Flask

from auth.pages import (
    access,
    account,
    brand,
    changes,
    confirm,
    errors,
    passkeys,
    passwords,
    profile,
    second_step,
    sign_in,
    sign_up,
    two_step,
    waiting,
)
from auth.settings import Settings
from auth.settings.brand import logo_file

blueprint = Blueprint("pages", __name__)
for _pages in (
    sign_in,
    sign_up,
    passwords,
    account,
    profile,
    changes,
    access,
    confirm,
    passkeys,
    two_step,
    second_step,
    waiting,
):
    blueprint.register_blueprint(_pages.blueprint)
errors.register_in(blueprint)


def register(app: Flask, settings: Settings) -> None:
    logo_file(settings.brand_logo)
    app.register_blueprint(brand.blueprint)
    if settings.pages:
        app.register_blueprint(blueprint)
    errors.register(app, settings.pages)
