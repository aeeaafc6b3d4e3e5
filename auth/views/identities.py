"""The identities of users: linked, over a page of ours, and unlinked."""

from typing import Any

from flask import Blueprint, Response, jsonify, request
from psycopg2.errors import UniqueViolation

from auth.context import latchkey
from auth.delivery import reduce
from auth.flows import outgoing
from auth.flows.oauth_flows import (
    FLOW_LIFETIME,
    authorization_url,
    browser_secret,
    flow_secrets,
    has_own_cookie,
    new_secrets,
    provider_named,
    refused,
    remember_browser,
    to_provider,
    turned_back,
)
from auth.flows.reauthentication import reauthenticate, reauthentication_needed
from auth.flows.token_response import see_other
from auth.net.redirects import origin, with_fragment
from auth.providers.client import ExternalIdentity, ProviderError
from auth.tokens import one_time
from auth.tokens.keys import CannotOpen
from auth.tokens.sealed import seal_json
from auth.web import guard, schemas
from auth.web.errors import ApiError
from auth.web.fields import is_uuid
from auth.web.limits import limited
from auth.web.pages import page
from auth.web.wire import accepts_forms, checked_redirect, read_body, read_query

blueprint = Blueprint("identities", __name__)


@blueprint.get("/user/identities/authorize")
@guard.access_token
@limited("user_changes", key=guard.caller_id)
def authorize_identity() -> Response:
    """Begin to link an identity to the caller: answer the address of a page that says so, for the browser to visit."""
    if request.method == "HEAD":
        guard.admit(latchkey.db.one("select_caller", **guard.caller()))
        return Response()
    query = read_query(schemas.LinkingQuery())
    provider = provider_named(query["provider"])
    reauthenticated = "nonce" in query and reauthenticate(guard.admit(latchkey.db.one("select_caller", **guard.caller())), query)
    state, flow_id = one_time.new_token(), outgoing.new_id()
    secrets = new_secrets() | {"scopes": query.get("scopes")}
    row = guard.admit(
        latchkey.db.one(
            "begin_linking",
            id=flow_id,
            reauthenticated=reauthenticated,
            state_hash=one_time.hash_token(state),
            provider=provider.name,
            secrets=seal_json(latchkey.sealer, secrets, flow_id),
            redirect_to=checked_redirect(query),
            lifetime=FLOW_LIFETIME,
            **guard.caller(),
        )
    )
    if row.state == "reauthentication_needed":
        # No password: an address is kept by logs and histories.
        raise reauthentication_needed("nonce with the code that GET /reauthenticate sends")
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
    # Browsers apply form-action to every redirect of the answer, and the provider leads where it likes, at last to the application.
    schemes = {"https:", *(["http:"] if latchkey.settings.is_local else [])}
    target = origin(latchkey.redirects.checked(flow.redirect_to))
    response = page(
        "link_identity.html",
        form_target=" ".join(sorted({*schemes, target})),
        provider=reduce.provider(flow.provider),
        account=flow.email or flow.phone,
        known_by=reduce.provider(flow.known_by),
        known_as=reduce.person(flow.known_as),
        flow=flow_token,
    )
    # The form must come from this page: another site's would bring no such cookie.
    remember_browser(response, browser_secret())
    return response


@blueprint.post("/link-identity")
@accepts_forms
@limited("verify")
def begin_linking() -> Response:
    """Send the person who has agreed to the provider, in this browser and no other."""
    if request.headers.get("Sec-Fetch-Site", "same-origin") != "same-origin" or not has_own_cookie():
        raise ApiError("form.insufficient_permissions")
    flow_hash = one_time.hash_token(read_body(schemas.LinkingForm())["flow"])
    known = flow_hash and latchkey.db.one("select_linking_flow", state_hash=flow_hash)
    if not known:
        return page("link_dead.html", status=403)
    provider = latchkey.providers.get(known.provider)
    if provider is None:
        return refused(latchkey.redirects.checked(known.redirect_to), "oauth_provider_not_supported")
    state, browser = one_time.new_token(), browser_secret(provider)
    flow = latchkey.db.one("bind_oauth_flow", state_hash=flow_hash, browser_hash=one_time.hash_token(browser), new_state_hash=one_time.hash_token(state))
    if flow is None:
        return page("link_dead.html", status=403)
    try:
        secrets = flow_secrets(flow)
        url = authorization_url(provider, state, secrets, secrets.get("scopes"))
    except CannotOpen:
        return page("link_dead.html", status=403)
    except ProviderError:
        return turned_back(known.redirect_to)
    return to_provider(provider, url, browser, 303)


@blueprint.delete("/user/identities/<identity_id>")
@guard.access_token
@limited("user_changes", key=guard.caller_id)
def delete_identity(identity_id: str) -> Response:
    """Unlink one of the caller's identities, never the last way to sign in."""
    body = read_body(schemas.Reauthentication())
    settings = latchkey.settings
    if not is_uuid(identity_id):
        guard.admit(latchkey.db.one("select_caller", **guard.caller()))
        raise ApiError("identity_not_found")
    reauthenticated = bool(body) and reauthenticate(guard.admit(latchkey.db.one("select_caller", **guard.caller())), body)
    row = guard.admit(
        latchkey.db.one(
            "unlink_identity",
            identity_id=identity_id,
            usable=[*latchkey.providers, *(["email"] if settings.email_enabled else []), *(["phone"] if settings.phone_enabled else [])],
            reauthenticated=reauthenticated,
            message_id=outgoing.new_id(),
            message_variables=outgoing.variables(),
            **guard.caller(),
        )
    )
    if row.state == "reauthentication_needed":
        raise reauthentication_needed()
    if row.state == "identity_not_found":
        raise ApiError("identity_not_found")
    if row.state == "single_identity_not_deletable":
        raise ApiError("single_identity_not_deletable")
    return jsonify(message="Identity unlinked", timestamp=row.moment)


def link_identity(flow: Any, identity: ExternalIdentity, target: str) -> Response:
    """Add whom a provider has identified to the user who began the flow, and send the browser on."""
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
        return refused(target, "identity_already_exists")
    if row is None:
        return refused(target, "session_not_found")
    return see_other(with_fragment(target, {"message": "The identity is linked", "type": "identity_linked"}))
