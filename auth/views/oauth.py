"""Signing in with a provider: GET /authorize, GET and POST /callback; and the identities of users, linked and unlinked."""

import hashlib
from typing import Any

import structlog
from flask import Blueprint, Response, json, jsonify, request
from psycopg2.errors import UniqueViolation

from auth import bounded_http, guard, one_time, outgoing, schemas
from auth.context import latchkey
from auth.errors import ApiError
from auth.fields import is_uuid
from auth.json_bodies import InvalidJson, decode
from auth.limits import limited
from auth.pages import page
from auth.providers.client import ExternalIdentity, Provider, ProviderError
from auth.reauthentication import reauthenticate, reauthentication_needed
from auth.redirects import origin, with_fragment
from auth.token_response import redirect_with_error, redirect_with_tokens, see_other
from auth.wire import accepts_forms, checked_redirect, client, read_body, read_query

log = structlog.get_logger()
blueprint = Blueprint("oauth", __name__)

# Seconds from leaving for the provider to coming back.
FLOW_LIFETIME = 600
_FORWARDED = ("provider", "redirect_to", "scopes", "code_challenge")
_CALLBACK_ERRORS = {"access_denied", "temporarily_unavailable", "server_error"}
_REFUSALS = {
    "bad_oauth_state": "This sign-in has expired, was finished before, or was begun in another browser",
    "bad_oauth_callback": "The provider did not sign you in",
    "identity_already_exists": "This identity belongs to another user, or the user has another one of this provider",
    "signup_disabled": "Sign-up is disabled",
    "user_banned": "This user is banned",
    "session_not_found": "The session that began this has ended",
}


@blueprint.get("/authorize")
@limited("login")
def authorize() -> Response:
    """Send a browser to the provider, and remember under which state (RFC 6749, section 4.1.1)."""
    query = read_query(schemas.AuthorizeQuery())
    provider = _provider(query["provider"])
    if query.get("skip_http_redirect") == "true":
        # The answer goes to a script, which can't be given our cookie: so it gets this address, for the browser to visit.
        others: dict[str, str] = {name: query[name] for name in _FORWARDED if name in query}
        return jsonify(url=outgoing.own_url("authorize", others))
    secrets = _new_secrets()
    state, browser = one_time.new_token(), _browser_secret(provider)
    url = _authorization_url(provider, state, secrets, query.get("scopes"))
    flow_id = outgoing.new_id()
    latchkey.db.run(
        "insert_oauth_flow",
        id=flow_id,
        state_hash=one_time.hash_token(state),
        browser_hash=one_time.hash_token(browser),
        provider=provider.name,
        secrets=latchkey.sealer.seal(json.dumps(secrets), flow_id),
        redirect_to=checked_redirect(query),
        code_challenge=query.get("code_challenge"),
        linking_user_id=None,
        linking_session_id=None,
        lifetime=FLOW_LIFETIME,
    )
    return _to_provider(provider, url, browser, 302)


@blueprint.get("/callback")
@blueprint.post("/callback")
@accepts_forms
@limited("login", unless=lambda: request.method == "HEAD")
def callback() -> Response:
    """Take back a browser from the provider: sign in, or link, whom it names."""
    site_url = latchkey.redirects.checked(None)
    if request.method == "HEAD":
        return Response()
    query = read_body(schemas.CallbackQuery()) if request.method == "POST" else read_query(schemas.CallbackQuery())
    state_hash = one_time.hash_token(query.get("state", ""))
    hashes = [one_time.hash_token(value) for name in _COOKIES if (value := request.cookies.get(_cookie_name(name)))]
    flow = None
    for browser_hash in filter(None, hashes):
        flow = flow or (state_hash and latchkey.db.one("spend_oauth_flow", state_hash=state_hash, browser_hash=browser_hash))
    if not flow:
        return redirect_with_error(site_url, "invalid_request", "bad_oauth_state", _REFUSALS["bad_oauth_state"])
    target = latchkey.redirects.checked(flow.redirect_to)
    if "error" in query or "code" not in query:
        error = query.get("error", "server_error")
        return redirect_with_error(target, error if error in _CALLBACK_ERRORS else "server_error", "bad_oauth_callback", _REFUSALS["bad_oauth_callback"])

    secrets = json.loads(latchkey.sealer.open(bytes(flow.secrets), flow.id))
    try:
        with bounded_http.one_deadline():
            identity = _provider(flow.provider).identify(
                code=query["code"], code_verifier=secrets["code_verifier"], nonce=secrets["nonce"], issuer=query.get("iss"), user=_apples_user(query)
            )
    except ProviderError as error:
        log.warning("provider_failed", provider=flow.provider, reason=str(error))
        return redirect_with_error(target, "server_error", "bad_oauth_callback", _REFUSALS["bad_oauth_callback"])
    if flow.user_id:
        return _link(flow, identity, target)
    row = _sign_in(identity, code_challenge=flow.code_challenge)
    if row.state != "live":
        return redirect_with_error(target, "access_denied", row.state, _REFUSALS[row.state])
    return redirect_with_tokens(target, row, "oauth")


def sign_in_with_id_token(body: dict[str, Any]) -> Any:
    """Return the row of the session that an id_token makes, once. Raises `ApiError`."""
    provider = _provider(body["provider"])
    refusal = ApiError(400, "bad_oauth_callback", "The id_token is not valid", "id_token: must be a fresh one of this provider for this client, with its nonce")
    try:
        with bounded_http.one_deadline():
            identity, expires_at = provider.identify_by_id_token(body["id_token"], body.get("nonce"))
    except ProviderError as error:
        log.warning("provider_failed", provider=provider.name, reason=str(error))
        raise refusal from None
    # Its signature can be written in several ways, what is signed in one.
    signed = body["id_token"].rpartition(".")[0]
    row = _sign_in(identity, id_token_hash=hashlib.sha256(signed.encode()).digest(), id_token_expires_at=expires_at)
    if row.state == "bad_oauth_callback":
        raise refusal
    if row.state != "live":
        raise ApiError(409 if row.state == "identity_already_exists" else 403, row.state, _REFUSALS[row.state])
    return row


@blueprint.get("/user/identities/authorize")
@guard.access_token
@limited("user_changes", key=guard.caller_id)
def authorize_identity() -> Response:
    """Begin to link an identity to the caller: answer the address of a page that says so, for the browser to visit."""
    query = read_query(schemas.AuthorizeQuery())
    provider = _provider(query["provider"])
    reauthenticated = "nonce" in query and reauthenticate(guard.admit(latchkey.db.one("select_caller", **guard.caller())), query)
    state, flow_id = one_time.new_token(), outgoing.new_id()
    secrets = _new_secrets() | {"scopes": query.get("scopes")}
    row = guard.admit(
        latchkey.db.one(
            "begin_linking",
            id=flow_id,
            reauthenticated=reauthenticated,
            state_hash=one_time.hash_token(state),
            provider=provider.name,
            secrets=latchkey.sealer.seal(json.dumps(secrets), flow_id),
            redirect_to=checked_redirect(query),
            code_challenge=query.get("code_challenge"),
            lifetime=FLOW_LIFETIME,
            **guard.caller(),
        )
    )
    if row.state == "reauthentication_needed":
        raise reauthentication_needed()
    return jsonify(url=outgoing.own_url("link-identity", {"flow": state}))


@blueprint.get("/link-identity")
@limited("verify")
def linking_page() -> Response:
    """Show a person whose account an identity is about to be linked to: it need not be their own."""
    flow_token = read_query(schemas.LinkingForm())["flow"]
    flow_hash = one_time.hash_token(flow_token)
    flow = flow_hash and latchkey.db.one("select_linking_flow", state_hash=flow_hash)
    if not flow:
        return page("link_dead.html", status=403)
    provider = _provider(flow.provider)
    try:
        target = origin(_authorization_url(provider, flow_token, _new_secrets(), None))
    except ApiError:
        return page("link_dead.html", status=503)
    return page("link_identity.html", form_target=target, provider=flow.provider, account=flow.email or flow.phone, flow=flow_token)


@blueprint.post("/link-identity")
@accepts_forms
@limited("verify")
def begin_linking() -> Response:
    """Send the person who has agreed to the provider, in this browser and no other."""
    if request.headers.get("Sec-Fetch-Site", "same-origin") != "same-origin":
        raise ApiError(403, "insufficient_permissions", "This form was sent by another site")
    flow_hash = one_time.hash_token(read_body(schemas.LinkingForm())["flow"])
    known = flow_hash and latchkey.db.one("select_linking_flow", state_hash=flow_hash)
    if not known:
        return page("link_dead.html", status=403)
    provider = _provider(known.provider)
    state, browser = one_time.new_token(), _browser_secret(provider)
    flow = latchkey.db.one("bind_oauth_flow", state_hash=flow_hash, browser_hash=one_time.hash_token(browser), new_state_hash=one_time.hash_token(state))
    if flow is None:
        return page("link_dead.html", status=403)
    secrets = json.loads(latchkey.sealer.open(bytes(flow.secrets), flow.id))
    return _to_provider(provider, _authorization_url(provider, state, secrets, secrets.get("scopes")), browser, 303)


@blueprint.delete("/user/identities/<identity_id>")
@guard.access_token
@limited("user_changes", key=guard.caller_id)
def delete_identity(identity_id: str) -> Response:
    """Unlink one of the caller's identities, never the last way to sign in."""
    body = read_body(schemas.Reauthentication())
    if not is_uuid(identity_id):
        guard.admit(latchkey.db.one("select_caller", **guard.caller()))
        raise ApiError(404, "identity_not_found", "There is no such identity")
    reauthenticated = bool(body) and reauthenticate(guard.admit(latchkey.db.one("select_caller", **guard.caller())), body)
    row = guard.admit(
        latchkey.db.one(
            "unlink_identity",
            identity_id=identity_id,
            reauthenticated=reauthenticated,
            message_id=outgoing.new_id(),
            message_variables=outgoing.variables(),
            **guard.caller(),
        )
    )
    if row.state == "reauthentication_needed":
        raise reauthentication_needed()
    if row.state == "identity_not_found":
        raise ApiError(404, "identity_not_found", "There is no such identity")
    if row.state == "single_identity_not_deletable":
        raise ApiError(422, "single_identity_not_deletable", "The last way to sign in, and an address, can't be unlinked")
    latchkey.deliverer.wake()
    return jsonify(message="Identity unlinked", timestamp=row.moment)


def _provider(name: str) -> Provider:
    provider = latchkey.providers.get(name)
    if provider is None:
        raise ApiError(400, "oauth_provider_not_supported", "This provider is not set up", "provider: must be one of external_providers in /settings")
    return provider


def _new_secrets() -> dict[str, Any]:
    return {"nonce": one_time.new_token(), "code_verifier": one_time.new_token()}


def _authorization_url(provider: Provider, state: str, secrets: dict[str, Any], scopes: str | None) -> str:
    try:
        with bounded_http.one_deadline():
            return provider.authorization_url(state=state, nonce=secrets["nonce"], code_verifier=secrets["code_verifier"], scopes=scopes)
    except ProviderError as error:
        log.warning("provider_failed", provider=provider.name, reason=str(error))
        raise ApiError(503, "service_unavailable", "The provider can't be reached; try again shortly", headers={"Retry-After": "10"}) from None


# One for providers that redirect, one for those that post a form: a form from another site brings no Lax cookie.
_COOKIES = ("flow", "flow_post")


def _cookie_name(name: str) -> str:
    # The prefix keeps other hosts of the domain from planting one (RFC 6265bis); it needs TLS.
    return f"__Host-latchkey_{name}" if latchkey.settings.base_url.startswith("https:") else f"latchkey_{name}"


def _browser_secret(provider: Provider) -> str:
    """Return what this browser is known by: as before, so that sign-ins in two tabs don't disturb each other."""
    sent = request.cookies.get(_cookie_name(_COOKIES[provider.posts_form]), "")
    return sent if one_time.hash_token(sent) else one_time.new_token()


def _to_provider(provider: Provider, url: str, browser: str, status: int) -> Response:
    response = Response(status=status, headers={"Location": url})
    response.set_cookie(
        _cookie_name(_COOKIES[provider.posts_form]),
        browser,
        max_age=FLOW_LIFETIME,
        httponly=True,
        path="/",
        secure=provider.posts_form or latchkey.settings.base_url.startswith("https:"),
        samesite="None" if provider.posts_form else "Lax",
    )
    return response


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
    try:
        row = latchkey.db.one("sign_in_by_identity", **parameters | id_token, **client())
    except UniqueViolation:
        # The same person has just come by another way; now that is seen.
        row = latchkey.db.one("sign_in_by_identity", **parameters | id_token, **client())
    latchkey.deliverer.wake()
    return row


def _link(flow: Any, identity: ExternalIdentity, target: str) -> Response:
    try:
        row = latchkey.db.one(
            "link_identity",
            user_id=flow.user_id,
            session_id=flow.session_id,
            provider=identity.provider,
            subject=identity.subject,
            identity_data=identity.data,
            message_id=outgoing.new_id(),
            message_variables=outgoing.variables(),
        )
    except UniqueViolation:
        return redirect_with_error(target, "access_denied", "identity_already_exists", _REFUSALS["identity_already_exists"])
    if row is None:
        return redirect_with_error(target, "access_denied", "session_not_found", _REFUSALS["session_not_found"])
    latchkey.deliverer.wake()
    return see_other(with_fragment(target, {"message": "The identity is linked", "type": "identity_linked"}))
