"""Signing out for applications (OpenID Connect RP-Initiated Logout 1.0)."""

from collections.abc import Mapping
from typing import Any, NamedTuple

from flask import Blueprint, Response, request

from auth.core.net.redirects import with_query
from auth.core.text import languages, names
from auth.extensions.openid import client_object, logout_hints, uris
from auth.extensions.openid.authorization_requests import log_closed_scheme, log_unregistered
from auth.web import Level, cookies, counted, guard, limits
from auth.web.context import latchkey
from auth.web.html import browser_sessions, form_schemas, signing_out
from auth.web.html.page import LANGUAGE, LANGUAGES
from auth.web.html.problems import form
from auth.web.input import read_form, read_query
from sql import queries

blueprint = Blueprint("logout", __name__)


class _Asked(NamedTuple):
    """`claims` are those of an ID token of the client; `url` is the client's URL to return to.

    `url` is also None if it `is_unregistered`.
    """

    client: "queries.SelectClient | None"
    claims: Mapping[str, Any] | None
    url: str | None
    is_unregistered: bool = False


def _read(sent: Mapping[str, str]) -> _Asked:
    claims = logout_hints.claims(sent.get("id_token_hint", ""))
    client = client_object.select_client(sent.get("client_id") or str((claims or {}).get("aud")))
    if claims and (client is None or claims["aud"] != client_object.sent_id(client)):
        claims = None
    uri = sent.get("post_logout_redirect_uri", "")
    if client is None or uri not in client.post_logout_redirect_uris:
        if client and uri:
            log_unregistered(client, "post_logout_redirect_uri", "--logout-uri", uri)
        return _Asked(client, claims, None, is_unregistered=bool(uri))
    if client.is_dynamic and not uris.is_open_scheme(latchkey.settings, uri):
        log_closed_scheme(client, "post_logout_redirect_uri")
        return _Asked(client, claims, None, is_unregistered=True)
    return _Asked(client, claims, with_query(uri, {"state": sent["state"]}) if sent.get("state") else uri)


@blueprint.get("/oauth/logout")
@counted("open_logout")
def show_logout() -> Response:
    """Sign the browser out for an application with the user's ID token. Without the token, ask the user."""
    if request.method == "HEAD":
        return Response()
    sent, known = read_query(form_schemas.LogoutQuery()), browser_sessions.resume()
    if known:
        # Not for a browser without a session: strangers could prevent users of a network from signing out.
        limits.count("open_logout", guard.caller_on_network())
    asked = _read(sent)
    is_users = bool(known and asked.claims and asked.claims["sub"] == known.user_id)
    # A stranger can register a client, which must not redirect visitors who never used it from our page to
    # its own.
    url = None if asked.client and asked.client.is_dynamic and not is_users else asked.url
    if is_users:
        return signing_out.end(url, done=signing_out.STUCK if asked.is_unregistered else "")
    if known is None:
        return signing_out.signed_out(url if asked.claims else None, is_stuck=asked.is_unregistered)
    language = None
    if "ui_locales" in sent and not cookies.sent(LANGUAGE):
        language = languages.choose(LANGUAGES, None, sent["ui_locales"].replace(" ", ","))
    kept: dict[str, str | None] = {
        name: sent[name] for name in ("client_id", "post_logout_redirect_uri", "state") if name in sent
    }
    name = asked.client and names.in_one_line(asked.client.name)
    return signing_out.ask(
        "oauth/logout/confirm", known, url, name, kept, language, is_stuck=asked.is_unregistered
    )


@blueprint.post("/oauth/logout/confirm")
@form("log_out", level=Level.SESSION)
def submit_logout() -> Response:
    asked = _read(read_form(form_schemas.LogoutQuery()))
    return signing_out.end(None if asked.client and asked.client.is_dynamic else asked.url)
