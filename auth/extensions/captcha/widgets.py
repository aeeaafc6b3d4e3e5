"""The captcha on our pages: the provider's widget, or our solver."""

import functools
from collections.abc import Mapping

from flask import Blueprint, Response, after_this_request
from flask.blueprints import BlueprintSetupState
from markupsafe import Markup

from auth.web.context import EXTENSION

# The operations of forms, by their target path.
_FORMS = {
    "sign-up": "sign_up",
    "sign-up/code": "request_confirmation",
    "sign-in": "sign_in_with_password",
    "sign-in/code": "request_sign_in",
    "forgot-password": "request_recovery",
}
# The resources of the widgets, as in their providers' documentation.
_HOSTS: Mapping[str, Mapping[str, str]] = {
    "turnstile": dict.fromkeys(("script-src", "frame-src"), "https://challenges.cloudflare.com"),
    "hcaptcha": dict.fromkeys(
        ("script-src", "frame-src", "style-src", "connect-src"), "https://hcaptcha.com https://*.hcaptcha.com"
    ),
}

blueprint = Blueprint("captcha_widgets", __name__)


@blueprint.record_once
def show_in_forms(state: BlueprintSetupState) -> None:
    """Let templates show the widget in forms that require it."""
    parts = state.app.extensions[EXTENSION]
    settings = parts.settings
    hosts = _HOSTS.get(settings.captcha, {}) if settings.captcha_site_key else {}

    def asks(*paths: str) -> list[str]:
        """Return those of the target paths whose forms require a captcha."""
        return [path for path in paths if _FORMS[path] in parts.operation_checks]

    has_widget = settings.captcha == "altcha" or bool(hosts)
    state.app.jinja_env.globals["captcha"] = {
        "asks": asks,
        "allow_hosts": functools.partial(_allow_hosts, hosts),
        "kind": settings.captcha if has_widget else None,
    }


def _allow_hosts(hosts: Mapping[str, str]) -> Markup:
    """Let the page that is rendered load its widget from these hosts, by directive."""

    @after_this_request
    def add_hosts(response: Response) -> Response:
        policy = response.headers.get("Content-Security-Policy")
        if policy is None:
            return response
        for directive, allowed in hosts.items():
            before, found, after = policy.partition(f"{directive} ")
            policy = f"{before}{found}{allowed} {after}" if found else f"{directive} {allowed}; {policy}"
        response.headers["Content-Security-Policy"] = policy
        return response

    return Markup("")
