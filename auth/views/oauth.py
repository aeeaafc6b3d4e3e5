"""Signing in with a provider: GET /authorize, GET and POST /callback, and native id_tokens."""

import hashlib
from contextlib import suppress
from typing import Any

import structlog
from flask import Blueprint, Response, jsonify, request
from psycopg2.errors import UniqueViolation

from auth.context import latchkey
from auth.flows import outgoing
from auth.flows.oauth_flows import (
    FLOW_LIFETIME,
    authorization_url,
    browser_secret,
    flow_secrets,
    new_secrets,
    provider_named,
    refused,
    sent_browser_hashes,
    to_provider,
    turned_back,
)
from auth.flows.token_response import redirect_with_code, redirect_with_error, redirect_with_tokens
from auth.net import bounded_http
from auth.providers.client import ExternalIdentity, ProviderError, ProviderUnavailable
from auth.tokens import one_time
from auth.tokens.keys import CannotOpen
from auth.tokens.sealed import seal_json
from auth.views.identities import link_identity
from auth.web import audit, schemas
from auth.web.errors import ApiError, unavailable
from auth.web.json_bodies import InvalidJson, decode
from auth.web.limits import limited
from auth.web.wire import accepts_forms, checked_redirect, client, read_body, read_query

log = structlog.get_logger()
blueprint = Blueprint("oauth", __name__)

_FORWARDED = ("provider", "redirect_to", "scopes", "code_challenge")
_CALLBACK_ERRORS = {"access_denied", "temporarily_unavailable", "server_error"}
_TRIES = 4


@blueprint.get("/authorize")
@limited("login")
def authorize() -> Response:
    """Send a browser to the provider, and remember under which state (RFC 6749, section 4.1.1)."""
    if request.method == "HEAD":
        return Response()
    query = read_query(schemas.AuthorizeQuery())
    provider = provider_named(query["provider"])
    if query.get("skip_http_redirect") == "true":
        # The answer goes to a script, which can't be given our cookie: so it gets this address, for the browser to visit.
        others: dict[str, str] = {name: query[name] for name in _FORWARDED if name in query}
        return jsonify(url=outgoing.own_url("authorize", others))
    secrets = new_secrets()
    state, browser = one_time.new_token(), browser_secret(provider)
    redirect_to = checked_redirect(query)
    try:
        url = authorization_url(provider, state, secrets, query.get("scopes"))
    except ProviderError:
        response = turned_back(redirect_to)
        response.status_code = 302  # as the way to the provider is
        return response
    flow_id = outgoing.new_id()
    latchkey.db.run(
        "insert_oauth_flow",
        id=flow_id,
        state_hash=one_time.hash_token(state),
        browser_hash=one_time.hash_token(browser),
        provider=provider.name,
        secrets=seal_json(latchkey.sealer, secrets, flow_id),
        redirect_to=redirect_to,
        code_challenge=query.get("code_challenge"),
        lifetime=FLOW_LIFETIME,
    )
    return to_provider(provider, url, browser, 302)


@blueprint.get("/callback")
@blueprint.post("/callback")
@blueprint.get("/providers/<name>/callback")
@blueprint.post("/providers/<name>/callback")
@accepts_forms
@limited("login", unless=lambda: request.method == "HEAD")
def callback(name: str | None = None) -> Response:
    """Take back a browser from the provider: sign in, or link, whom it names."""
    site_url = latchkey.redirects.checked(None)
    if request.method == "HEAD":
        return Response()
    query = read_body(schemas.CallbackQuery()) if request.method == "POST" else read_query(schemas.CallbackQuery())
    state_hash = one_time.hash_token(query.get("state", ""))
    flow = None
    for browser_hash in sent_browser_hashes():
        flow = flow or (state_hash and latchkey.db.one("spend_oauth_flow", state_hash=state_hash, browser_hash=browser_hash))
    if not flow:
        return refused(site_url, "bad_oauth_state")
    target = latchkey.redirects.checked(flow.redirect_to)
    provider = latchkey.providers.get(flow.provider)
    if provider is None:
        return refused(target, "oauth_provider_not_supported")
    if provider.callback_name != name:
        # So the code is another provider's, and this one must not get it (mix-up).
        log.warning("provider_failed", provider=provider.name, reason="the browser came to the redirect URI of another provider")
        return refused(target, "bad_oauth_callback")
    if "error" in query or "code" not in query:
        error = query.get("error", "server_error")
        return redirect_with_error(target, error if error in _CALLBACK_ERRORS else "server_error", ApiError("bad_oauth_callback"))

    try:
        secrets = flow_secrets(flow)
        with bounded_http.one_deadline():
            identity = provider.identify(
                code=query["code"], code_verifier=secrets["code_verifier"], nonce=secrets["nonce"], issuer=query.get("iss"), user=_apples_user(query)
            )
    except CannotOpen:
        return refused(target, "bad_oauth_state")
    except ProviderError as error:
        log.warning("provider_failed", provider=flow.provider, reason=str(error))
        return refused(target, "bad_oauth_callback")
    if flow.user_id:
        audit.about(user_id=flow.user_id, provider=flow.provider)
        return link_identity(flow, identity, target)
    row = _sign_in(identity, code_challenge=flow.code_challenge)
    if row.state != "live":
        return refused(target, row.state)
    if row.authorization_code:
        return redirect_with_code(target, row.authorization_code)
    return redirect_with_tokens(target, row, "oauth")


def sign_in_with_id_token(body: dict[str, Any]) -> Any:
    """Return the row of the session that an id_token makes, once. Raises `ApiError`."""
    provider = provider_named(body["provider"])
    refusal = ApiError("id_token.bad_oauth_callback", "id_token: must be a fresh one of this provider for this client, with its nonce")
    try:
        with bounded_http.one_deadline():
            identity, expires_at = provider.identify_by_id_token(body["id_token"], body.get("nonce"))
    except ProviderError as error:
        log.warning("provider_failed", provider=provider.name, reason=str(error))
        raise unavailable("provider.service_unavailable") if isinstance(error, ProviderUnavailable) else refusal from None
    # Its signature can be written in several ways, what is signed in one.
    signed = body["id_token"].rpartition(".")[0]
    row = _sign_in(identity, id_token_hash=hashlib.sha256(signed.encode()).digest(), id_token_expires_at=expires_at)
    if row.state == "bad_oauth_callback":
        raise refusal
    if row.state != "live":
        raise ApiError(row.state)
    return row


def _apples_user(query: dict[str, Any]) -> dict[str, Any] | None:
    """Return what Apple says of a name, beside the token, the first time alone. It is not signed, so it is a name and no more."""
    try:
        return decode(query["user"].encode()) if "user" in query else None
    except (InvalidJson, UnicodeError):
        return None


def _sign_in(identity: ExternalIdentity, *, code_challenge: str | None = None, **id_token: Any) -> Any:
    parameters: dict[str, Any] = {
        "provider": identity.provider,
        "subject": identity.subject,
        "identity_data": identity.data,
        "email": identity.email,
        "email_verified": identity.email_verified,
        "is_trusted": identity.is_trusted,
        "signup_allowed": not latchkey.settings.disable_signup,
        "code_challenge": code_challenge,
        "authorization_code": one_time.new_token(),
        "authorization_code_lifetime": one_time.AUTHORIZATION_CODE_LIFETIME,
        "id_token_hash": None,
        "id_token_expires_at": None,
    }
    # The same person may just be coming by another way, or being parted from the identity: what has happened is seen by the next try.
    for _ in range(_TRIES):
        with suppress(UniqueViolation):
            row = latchkey.db.one("sign_in_by_identity", **parameters | id_token, **client())
            if row.state != "identity_lost":
                audit.about(user_id=row.user_id, provider=identity.provider)
                return row
            # By now the id_token is spent, by us.
            id_token = {}
    raise unavailable()
