"""Captchas: proofs that no bot sends a request, which acts of strangers ask for."""

from typing import TYPE_CHECKING

from auth.core.settings import Settings

if TYPE_CHECKING:
    from flask import Flask

    from auth.web.context import Lists

# The acts of AUTH_CAPTCHA_ROUTES. Two routes of one act ask together, or one would lead around the other.
ACTS = {
    "signup": ("sign_up", "sign_up_anonymously"),
    "recover": ("request_recovery",),
    "resend": ("request_confirmation",),
    "magiclink": ("request_sign_in",),
    "otp": ("request_sign_in",),
    "token": ("sign_in_with_password",),
}


def init_lists(lists: "Lists", settings: Settings) -> None:
    from auth.extensions.captcha import asking

    lists.acts.update((act, asking.ask) for route in settings.captcha_routes for act in ACTS[route])


def init_app(app: "Flask") -> None:
    from auth.extensions.captcha import routes, widgets
    from auth.web.context import EXTENSION

    parts = app.extensions[EXTENSION]
    if parts.settings.captcha == "altcha":
        app.register_blueprint(routes.blueprint)
    widgets.register(app, parts)
