"""Signing in with a provider: GET /authorize, GET and POST /callback."""

from typing import Any

from flask import Blueprint, Response, jsonify, request

from auth.context import latchkey
from auth.flows import identity_linking, outgoing
from auth.flows.oauth_flows import (
    FLOW_LIFETIME,
    authorization_url,
    browser_secret,
    identify,
    new_secrets,
    provider_named,
    refused,
    spend_flow,
    to_provider,
    turned_back,
)
from auth.flows.oauth_sign_in import sign_in
from auth.flows.token_response import redirect_with_code, redirect_with_tokens, see_other
from auth.net.redirects import with_fragment
from auth.providers.client import ProviderError
from auth.tokens import one_time
from auth.tokens.sealed import seal_json
from auth.web import audit, schemas
from auth.web.errors import ApiError
from auth.web.input import accepts_forms, checked_redirect, read_body, read_query
from auth.web.limits import limited

blueprint = Blueprint("oauth", __name__)

_FORWARDED = ("provider", "redirect_to", "scopes", "code_challenge")


@blueprint.get("/authorize")
@limited("login")
def authorize() -> Response:
    """Begin a flow, and redirect the browser to the provider (RFC 6749, section 4.1.1)."""
    if request.method == "HEAD":
        return Response()
    query = read_query(schemas.AuthorizeQuery())
    provider = provider_named(query["provider"])
    if query.get("skip_http_redirect") == "true":
        # A script can't be given our cookie: it gets this address, for the browser to visit.
        forwarded: dict[str, str] = {name: query[name] for name in _FORWARDED if name in query}
        return jsonify(url=outgoing.own_url("authorize", forwarded))
    secrets = new_secrets()
    state, browser = one_time.new_token(), browser_secret(provider)
    redirect_to = checked_redirect(query)
    try:
        url = authorization_url(provider, state, secrets, query.get("scopes"))
    except ProviderError:
        response = turned_back(redirect_to)
        response.status_code = 302
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
    """Take the browser back from the provider: sign the user in, or link the identity."""
    if request.method == "HEAD":
        return Response()
    query = (
        read_body(schemas.CallbackQuery())
        if request.method == "POST"
        else read_query(schemas.CallbackQuery())
    )
    flow = spend_flow(query.get("state", ""))
    if flow is None:
        return refused(latchkey.redirects.checked(None), ApiError("bad_oauth_state"))
    target = latchkey.redirects.checked(flow.redirect_to)
    try:
        return _link(flow, name, query, target) if flow.user_id else _sign_in(flow, name, query, target)
    except ApiError as error:
        if error.status == 503:
            raise
        return refused(target, error)


def _sign_in(flow: Any, name: str | None, query: dict[str, Any], target: str) -> Response:
    done = sign_in(identify(flow, name, query), code_challenge=flow.code_challenge)
    if done.authorization_code:
        return redirect_with_code(target, done.authorization_code)
    return redirect_with_tokens(target, done.session, "oauth")


def _link(flow: Any, name: str | None, query: dict[str, Any], target: str) -> Response:
    identity = identify(flow, name, query)
    audit.about(user_id=flow.user_id, provider=flow.provider)
    identity_linking.link(flow, identity)
    return see_other(with_fragment(target, {"message": "The identity is linked", "type": "identity_linked"}))
