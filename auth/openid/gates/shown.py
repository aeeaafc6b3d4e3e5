"""Errors on the host of a gate: a page without other files, which the host would take from the tool."""

import secrets

from flask import Blueprint, Response, render_template

from auth.web.context import latchkey
from auth.web.error_handlers import as_api_error
from auth.web.errors import envelope
from auth.web.html.page import chosen_language, text
from auth.web.html.problems import asks_for_page, problem_of

_POLICY = (
    "default-src 'none'; style-src 'nonce-{}'; form-action 'none'; frame-ancestors 'none'; base-uri 'none'"
)


def register(blueprint: Blueprint) -> None:
    blueprint.register_error_handler(Exception, answer)


def answer(exception: Exception) -> Response:
    """Return an error as a page for a browser, and as the envelope for a program."""
    error = as_api_error(exception)
    # A 401 of a proxy has the envelope: a browser that opens a page is redirected.
    if error.status == 401 or not asks_for_page():
        return envelope(error)
    problem, settings = problem_of(error), latchkey.settings
    heading, button, url = text("error", "heading"), text("error", "again"), ""
    said = problem.text
    if error.key == "gate.insufficient_permissions":
        heading, said = text("consent", "refused", **error.values), text("consent", "refused_lead")
        button, url = text("signed_in", "account"), f"{settings.base_url}/account"
    elif error.error_code == "oauth_authorization_not_found":
        url = "/"
    nonce = secrets.token_urlsafe(16)
    shown = {"heading": heading, "said": said, "button": button, "url": url, "nonce": nonce}
    response = Response(render_template("gate.html", language=chosen_language(), **shown), error.status)
    response.headers["Content-Security-Policy"] = _POLICY.format(nonce)
    response.headers.extend(problem.headers)
    response.vary.add("Accept-Language")
    return response
