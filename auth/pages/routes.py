from flask import Blueprint, Flask

from auth.api_keys import page as api_keys
from auth.core.settings import Settings
from auth.core.settings.brand import logo_file
from auth.openid.pages import consent, logout
from auth.pages import account, confirm, factors, passkeys, passwords, profile, removing, sign_in, waiting
from auth.web.html import brand, leaving, page, problems

blueprint = Blueprint("pages", __name__)
for _pages in (
    *(sign_in, waiting, passwords, account, api_keys, removing),
    *(profile, confirm, passkeys, factors, consent, logout),
):
    blueprint.register_blueprint(_pages.blueprint)
problems.register_in(blueprint)


def register(app: Flask, settings: Settings) -> None:
    for setting, logo in settings.logos.items():
        logo_file(setting, logo)
    app.register_blueprint(brand.blueprint)
    if settings.pages:
        app.register_blueprint(blueprint)
    page.register(app, settings)
    problems.register(app, settings.pages)
    leaving.register(app)
