"""Signing out, also for applications (OpenID Connect RP-Initiated Logout 1.0)."""

from collections.abc import Mapping
from typing import Any, NamedTuple
from urllib.parse import urlsplit

from flask import Blueprint, Response, request

from auth.core.net.redirects import with_query
from auth.core.text import languages, names
from auth.core.tokens.jws import InvalidAccessToken
from auth.domain.sessions import browser_sessions
from auth.domain.sessions.token_response import redirect
from auth.openid import clients
from auth.openid.switch import provider
from auth.web import Level, cookies, form_schemas
from auth.web.context import latchkey
from auth.web.html.destinations import destination
from auth.web.html.page import LANGUAGE, LANGUAGES, page, root
from auth.web.html.problems import form
from auth.web.input import read_form, read_query
from auth.web.limits import limited

blueprint = Blueprint("logout", __name__)


class _Asked(NamedTuple):
    """`claims` are those of an ID token of the client, `url` is where the client wants the browser back."""

    client: Any
    claims: Mapping[str, Any] | None
    url: str | None


def _read(sent: Mapping[str, Any]) -> _Asked:
    claims = _claims(sent.get("id_token_hint", ""))
    client = clients.select_client(sent.get("client_id") or str((claims or {}).get("aud")))
    if claims and (client is None or claims["aud"] != client.id):
        claims = None
    uri = sent.get("post_logout_redirect_uri", "")
    if client is None or uri not in client.post_logout_redirect_uris:
        return _Asked(client, claims, None)
    return _Asked(client, claims, with_query(uri, {"state": sent["state"]}) if sent.get("state") else uri)


def _claims(id_token: str) -> dict[str, Any] | None:
    try:
        return latchkey.client_tokens.read_hint(id_token)
    except InvalidAccessToken:
        return None


@blueprint.get("/oauth/logout")
@provider
@limited("open_logout")
def show_logout() -> Response:
    """Sign the browser out for an application that has the user's ID token, or ask."""
    if request.method == "HEAD":
        return Response()
    sent = read_query(form_schemas.LogoutQuery())
    asked, known = _read(sent), browser_sessions.resume()
    is_users = bool(known and asked.claims and asked.claims["sub"] == known.user_id)
    # Anybody can register one. It must not lead visitors who never used it from our page to its own.
    url = None if asked.client and asked.client.is_dynamic and not is_users else asked.url
    if is_users:
        return _end(url)
    if known is None:
        return _signed_out(url if asked.claims else None)
    language = None
    if "ui_locales" in sent and not cookies.sent(LANGUAGE):
        language = languages.choose(LANGUAGES, None, sent["ui_locales"].replace(" ", ","))
    kept = {name: sent[name] for name in ("client_id", "post_logout_redirect_uri", "state") if name in sent}
    name = asked.client and names.in_one_line(asked.client.name)
    return _ask("oauth/logout/confirm", known, url, name, kept, language)


@blueprint.post("/oauth/logout/confirm")
@provider
@form("log_out", level=Level.SESSION)
def submit_logout() -> Response:
    asked = _read(read_form(form_schemas.LogoutQuery()))
    return _end(None if asked.client and asked.client.is_dynamic else asked.url)


@blueprint.get("/sign-out")
def show_sign_out() -> Response:
    """Ask whether to sign out. A link alone must not do it: any site could send the browser here."""
    url, known = _back(), browser_sessions.resume()
    if known is None:
        return _signed_out(url)
    host = urlsplit(url).netloc if url else None
    # The host is the name of the brand, unless one is set.
    application = host if host != latchkey.settings.brand_name else None
    return _ask("sign-out", known, url, application, {"redirect_to": url, "back": "yes"})


@blueprint.post("/sign-out")
@form("log_out", level=Level.SESSION)
def sign_out() -> Response:
    """End the browser's session with those of its applications, or all of the user's."""
    sent, to = read_form(form_schemas.SignOutForm()), destination()
    is_for_other_account = "back" not in sent and (to or to.next)
    return _end(f"{root()}{to.path('sign-in')}" if is_for_other_account else _back(), sent["scope"])


def _back() -> str | None:
    """Return the `redirect_to` of the request if it is allowed."""
    url = destination().redirect_to
    return url if url == request.values.get("redirect_to") else None


def _ask(
    action: str,
    known: Any,
    url: str | None,
    application: str | None,
    sent: Mapping[Any, str | None],
    language: str | None = None,
) -> Response:
    return page(
        "logout.html",
        language=language,
        action=action,
        form_target=url,
        client_name=application,
        account=known.email or known.phone or known.name,
        sent={name: value for name, value in sent.items() if value},
    )


def _end(url: str | None, scope: str = "local") -> Response:
    browser_sessions.end(scope)
    response = _signed_out(url)
    browser_sessions.forget(response)
    return response


def _signed_out(url: str | None) -> Response:
    return redirect(url) if url else page("signed_out.html", here="/sign-in")
