"""The captcha on our pages: the provider's widget, or our solver."""

from collections.abc import Mapping, Set

import flask
from flask import Flask, Response
from markupsafe import Markup

from auth.core.settings import Settings

# The acts of forms, by their target path.
_FORMS = {
    "sign-up": "sign_up",
    "sign-up/code": "request_confirmation",
    "sign-in": "sign_in_with_password",
    "sign-in/code": "request_sign_in",
    "forgot-password": "request_recovery",
}
# The form field with the token, if the widget does not let us choose its name.
FIELDS: Mapping[str, str] = {"hcaptcha": "h-captcha-response"}
# The resources of the widgets, as in their providers' documentation.
_HOSTS: Mapping[str, Mapping[str, str]] = {
    "turnstile": dict.fromkeys(("script-src", "frame-src"), "https://challenges.cloudflare.com"),
    "hcaptcha": dict.fromkeys(
        ("script-src", "frame-src", "style-src", "connect-src"), "https://hcaptcha.com https://*.hcaptcha.com"
    ),
}


def register(app: Flask, settings: Settings, acts: Set[str]) -> None:
    """Let templates show the widget in forms that require it, and allow its hosts only on those pages."""
    hosts = _HOSTS.get(settings.captcha, {}) if settings.captcha_site_key else {}

    def asks(*paths: str) -> list[str]:
        """Return those of the target paths whose forms require a captcha."""
        return [path for path in paths if _FORMS[path] in acts]

    def allow_hosts() -> Markup:
        flask.g.shows_captcha = True
        return Markup("")

    def add_hosts(response: Response) -> Response:
        if getattr(flask.g, "shows_captcha", False) and (
            policy := response.headers.get("Content-Security-Policy")
        ):
            for directive, allowed in hosts.items():
                before, found, after = policy.partition(f"{directive} ")
                policy = f"{before}{found}{allowed} {after}" if found else f"{directive} {allowed}; {policy}"
            response.headers["Content-Security-Policy"] = policy
        return response

    has_widget = settings.captcha == "altcha" or bool(hosts)
    app.jinja_env.globals["captcha"] = {
        "asks": asks,
        "allow_hosts": allow_hosts,
        "kind": settings.captcha if has_widget else None,
    }
    app.after_request(add_hosts)
