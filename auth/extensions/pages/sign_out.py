"""Signing out of this browser, or of all of them."""

from urllib.parse import urlsplit

from flask import Blueprint, Response, request

from auth.html import browser_sessions, form_schemas, forms, signing_out
from auth.html.destinations import destination
from auth.html.page import root
from auth.html.problems import form
from auth.web import Level
from auth.web.context import latchkey
from auth.web.input import read_form

blueprint = Blueprint("sign_out", __name__)


@blueprint.get("/sign-out")
def show_sign_out() -> Response:
    """Ask whether to sign out. A link must not do it: any site could send the browser here."""
    url, session = _back(), browser_sessions.resume()
    if session is None:
        return signing_out.signed_out(url, is_stuck=forms.signed_value("done") == signing_out.STUCK)
    host = urlsplit(url).netloc if url else None
    # The host is the name of the brand, unless one is set.
    application = host if host != latchkey.settings.brand_name else None
    return signing_out.ask("sign-out", session, url, application, {"redirect_to": url, "back": "yes"})


@blueprint.post("/sign-out")
@form("log_out", level=Level.SESSION)
def sign_out() -> Response:
    """End the browser's session with those of its applications, or all sessions of the user."""
    values, to = read_form(form_schemas.SignOutForm), destination()
    is_for_other_account = "back" not in values and (to or to.next)
    url = f"{root()}{to.path('sign-in')}" if is_for_other_account else _back()
    return signing_out.end(url, values["scope"])


def _back() -> str | None:
    url, requested = destination().redirect_to, request.values.get("redirect_to")
    return url if requested and latchkey.redirects.allowed(requested) else None
