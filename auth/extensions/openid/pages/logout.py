"""Signing out for applications (OpenID Connect RP-Initiated Logout 1.0)."""

from collections.abc import Mapping
from typing import Any, NamedTuple

from flask import Blueprint, Response, request

from auth.core.net.redirects import with_query
from auth.core.text import languages, names
from auth.extensions.openid import client_object, logout_hints, uris
from auth.extensions.openid.authorization_requests import log_closed_scheme, log_unregistered
from auth.html import browser_sessions, form_schemas, signing_out
from auth.html.page import LANGUAGE, LANGUAGES
from auth.html.problems import form
from auth.web import Level, cookies, counted, guard, limits
from auth.web.asked import current_asked
from auth.web.input import read_form, read_query
from sql import queries

blueprint = Blueprint("logout", __name__)


class _Logout(NamedTuple):
    """A request to sign out, with the claims of the client's ID token, if it is valid.

    `url` is where the browser returns to; None if the request names none, or one that `is_unregistered`.
    """

    client: "queries.SelectClient | None"
    claims: Mapping[str, Any] | None
    url: str | None
    is_unregistered: bool = False


def _read(parameters: Mapping[str, str]) -> _Logout:
    asked = current_asked()
    claims = logout_hints.read(asked.parts, parameters.get("id_token_hint", ""))
    client = client_object.select_client(asked, parameters.get("client_id") or str((claims or {}).get("aud")))
    if claims and (client is None or claims["aud"] != client_object.sent_id(client)):
        claims = None
    uri = parameters.get("post_logout_redirect_uri", "")
    if client is None or uri not in client.post_logout_redirect_uris:
        if client and uri:
            log_unregistered(client, "post_logout_redirect_uri", "--logout-uri", uri)
        return _Logout(client, claims, None, is_unregistered=bool(uri))
    if client.is_dynamic and not uris.is_open_scheme(asked.settings, uri):
        log_closed_scheme(client, "post_logout_redirect_uri")
        return _Logout(client, claims, None, is_unregistered=True)
    state = parameters.get("state")
    return _Logout(client, claims, with_query(uri, {"state": state}) if state else uri)


@blueprint.get("/oauth/logout")
@counted("open_logout")
def show_logout() -> Response:
    """Sign the browser out for an application with the user's ID token. Without the token, ask the user."""
    if request.method == "HEAD":
        return Response()
    query, session = read_query(form_schemas.LogoutQuery), browser_sessions.resume()
    if session:
        # Browsers without a session do not count: strangers could prevent a network's users from signing out.
        limits.count("open_logout", guard.caller_on_network())
    logout = _read(query)
    # Whether the ID token is one of the user who is signed in.
    is_own = bool(session and logout.claims and logout.claims["sub"] == session.user_id)
    # A stranger can register a client, which must not lead visitors who never used it to its own page.
    url = None if logout.client and logout.client.is_dynamic and not is_own else logout.url
    if is_own:
        return signing_out.end(url, done=signing_out.STUCK if logout.is_unregistered else "")
    if session is None:
        return signing_out.signed_out(url if logout.claims else None, is_stuck=logout.is_unregistered)
    language = None
    if "ui_locales" in query and not cookies.read(LANGUAGE):
        language = languages.choose(LANGUAGES, None, query["ui_locales"].replace(" ", ","))
    kept: dict[str, str | None] = {
        name: query[name] for name in ("client_id", "post_logout_redirect_uri", "state") if name in query
    }
    name = logout.client and names.in_one_line(logout.client.name)
    return signing_out.ask(
        "oauth/logout/confirm", session, url, name, kept, language, is_stuck=logout.is_unregistered
    )


@blueprint.post("/oauth/logout/confirm")
@form("log_out", level=Level.SESSION)
def submit_logout() -> Response:
    logout = _read(read_form(form_schemas.LogoutQuery))
    return signing_out.end(None if logout.client and logout.client.is_dynamic else logout.url)
