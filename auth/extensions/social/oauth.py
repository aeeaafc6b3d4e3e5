from dataclasses import replace

from flask import Blueprint, Response, jsonify, request
from flask.typing import ResponseReturnValue

from auth.core.tokens import one_time
from auth.flows.account import identities
from auth.flows.messages import outgoing
from auth.flows.sessions.token_response import token_response
from auth.flows.sign_in import oauth
from auth.flows.sign_in.external_identities import sign_in, sign_in_with_id_token
from auth.html import providers
from auth.html.redirects import COMPANY, FlowEnd, is_page, redirect_done, redirect_signed_in
from auth.web import (
    Level,
    answered_by,
    audited,
    cookies,
    fields,
    g,
    guard,
    refuses_by_page,
    schemas,
    takes_foreign_forms,
    takes_tokens,
)
from auth.web.application import JsonResponse, redirect
from auth.web.asked import current_asked
from auth.web.context import latchkey
from auth.web.errors import ApiError
from auth.web.input import checked_redirect, read_body, read_query
from auth.web.limits import limited
from sql import queries

blueprint = Blueprint("oauth", __name__)

_FORWARDED = ("provider", "redirect_to", "scopes", "code_challenge", "prompt")
_AuthorizeQuery = schemas.Challenged.of(
    provider=fields.Text(required=True),
    scopes=fields.Text(),
    skip_http_redirect=fields.Text(),
    prompt=fields.Text(),
)
_CallbackQuery = schemas.Input.of(
    state=fields.Text(),
    code=fields.LongText(),
    error=fields.Text(),
    error_description=fields.LongText(),
    iss=fields.Text(),
    user=fields.LongText(),
)


class _IdTokenGrant(schemas.Input):
    provider = fields.Text(required=True)
    id_token = fields.LongText(required=True)
    nonce = fields.Text()
    link_identity = fields.Flag(load_default=False)


@blueprint.get("/authorize")
@limited("begin_at_provider")
@refuses_by_page
def authorize() -> Response:
    """Begin a flow, and redirect the browser to the provider (RFC 6749, section 4.1.1)."""
    asked = current_asked()
    if request.method == "HEAD":
        return Response()
    query = read_query(_AuthorizeQuery)
    provider = oauth.provider_named(asked, query["provider"])
    if query.get("skip_http_redirect") == "true":
        # A script cannot receive our cookie: the browser must open this URL.
        forwarded: dict[str, str] = {name: query[name] for name in _FORWARDED if name in query}
        return jsonify(url=outgoing.own_url(latchkey.settings, "authorize", forwarded))
    redirect_to = checked_redirect(asked, query)
    comes_from_us = request.headers.get("Sec-Fetch-Site", "none") in ("same-origin", "none")
    if redirect_to and latchkey.redirects.is_own_page(redirect_to) and not comes_from_us:
        # This would sign the browser out of its current account, so the page asks the user.
        return redirect(redirect_to, 302)
    return providers.begin_sign_in(
        provider,
        redirect_to,
        code_challenge=query.get("code_challenge"),
        scopes=query.get("scopes"),
        asks_again=query.get("prompt") == "login",
        status=302,
    )


@blueprint.get("/callback")
@blueprint.post("/callback")
@blueprint.get("/providers/<name>/callback")
@blueprint.post("/providers/<name>/callback")
@takes_foreign_forms
@limited("return_from_provider", unless=lambda: request.method == "HEAD")
@audited("oauth_refused", sign_in="oauth")
@refuses_by_page
def callback(name: str | None = None) -> Response:
    """Receive the browser from the provider: sign the user in, or link the identity."""
    if request.method == "HEAD":
        return Response()
    read = read_body if request.method == "POST" else read_query
    query = read(_CallbackQuery)
    # The flow of this state, if this browser has its cookie.
    state_hash = one_time.hash_token(query.get("state", ""))
    flow = queries.spend_oauth_flow(
        latchkey.db,
        state_hash=state_hash,
        browser_hashes=[one_time.hash_token(cookies.read(cookie)) for cookie in providers.COOKIES.values()],
    )
    if flow is None or not flow.is_live:
        # Without its cookie the flow is not spent, and only the error goes to its target.
        unspent = flow or queries.select_oauth_flow(latchkey.db, state_hash=state_hash)
        return providers.redirect_with_refusal(FlowEnd.of(unspent), ApiError("bad_oauth_state"))
    asked, initiator, identity = current_asked(), oauth.initiator_of(flow), None
    ending = replace(FlowEnd.of(flow), is_signed_in=initiator is not None)
    try:
        identity = oauth.identify(asked, flow, name, query)
        if flow.user_id and not initiator:
            g.note(user_id=flow.user_id, provider=flow.provider)
            identities.link(asked, flow, identity)
            return redirect_done(ending, "identity_linked", "Identity linked")
        hook = None if latchkey.redirects.is_own_page(ending.url) else asked.parts.token_hook
        outcome = sign_in(asked, identity, hook, code_challenge=flow.code_challenge, initiator=initiator)
        return redirect_signed_in(ending.url, outcome, way=flow.provider)
    except ApiError as error:
        if error.error_code == "service_unavailable":
            raise
        if error.key == "user_sso_conflict" and identity and latchkey.redirects.is_own_page(ending.url):
            return providers.redirect_to_own_way(ending, identity.email)
        is_trial = initiator is not None and not is_page(ending.url, COMPANY)
        return providers.redirect_with_refusal(ending, oauth.explained(asked, flow, error, is_trial=is_trial))


@takes_tokens
@limited("sign_in_with_id_token")
@audited("sign_in_refused", sign_in="id_token")
def exchange_id_token() -> ResponseReturnValue:
    asked = current_asked()
    body = read_body(_IdTokenGrant)
    if body["link_identity"]:
        return answered_by(_link_by_id_token, body)
    return JsonResponse(token_response(asked.parts, sign_in_with_id_token(asked, body)))


@takes_tokens
@guard.access_token(Level.PROOF)
@audited("change_refused", sign_in="id_token")
def _link_by_id_token(body: dict[str, object]) -> Response:
    asked = current_asked()
    identities.require_manual_linking(asked)
    return JsonResponse(token_response(asked.parts, identities.link_by_id_token(asked, body)))
