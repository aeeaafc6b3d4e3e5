"""Captchas, which operations of strangers require as proofs that no bot sends the request."""

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from auth.core.settings import Settings
from auth.registry import Extension

if TYPE_CHECKING:
    from flask import Flask

# The operations of AUTH_CAPTCHA_ROUTES. All routes of one require a captcha, so that none bypasses it.
_OPERATIONS = {
    "signup": ("sign_up", "sign_up_anonymously"),
    "recover": ("request_recovery",),
    "resend": ("request_confirmation",),
    "magiclink": ("request_sign_in",),
    "otp": ("request_sign_in",),
    "token": ("sign_in_with_password",),
}


class Captcha(Extension):
    api = ("routes",)
    pages = ("widgets",)

    def __init__(self, settings: Settings) -> None:
        super().__init__(settings)
        self._operations = {each for route in settings.captcha_routes for each in _OPERATIONS[route]}

    def init_app(self, app: "Flask") -> None:
        if self.settings.captcha == "altcha":
            super().init_app(app)

    def operation_checks(self) -> Mapping[str, Callable[[], None]]:
        from auth.extensions.captcha import routes

        return dict.fromkeys(self._operations, routes.ask)


EXTENSION = Captcha
