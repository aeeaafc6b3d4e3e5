from flask import Blueprint, Response, jsonify, request
from werkzeug.routing import BaseConverter

from auth.core.text import names
from auth.core.tokens import one_time
from auth.core.tokens.derived_keys import CannotOpen
from auth.flows import facts
from auth.flows.account import identities
from auth.flows.messages import outgoing
from auth.flows.sign_in import oauth
from auth.flows.sign_in.reauthentication import add, give_proof, remove
from auth.html import form_schemas, providers
from auth.html.forms import own_form_or_json
from auth.html.page import page, provider_title
from auth.html.redirects import FlowEnd
from auth.rules.sessions import end_of_session
from auth.rules.users import is_banned
from auth.web import Level, asks_more, audited, cookies, fields, guard, refuses_by_page, schemas
from auth.web.asked import current_asked
from auth.web.context import latchkey
from auth.web.errors import ApiError
from auth.web.fields import is_uuid
from auth.web.input import checked_redirect, read_body, read_form, read_query
from auth.web.limits import limited
from sql import acts, queries

blueprint = Blueprint("identities", __name__)
_LinkingQuery = schemas.Input.of(
    provider=fields.Text(required=True),
    redirect_to=fields.Text(),
    scopes=fields.Text(),
    nonce=fields.Code(),
    # Linking gives no code. React Native's challenge is the verifier itself (`plain`).
    code_challenge=fields.Text(),
    code_challenge_method=fields.Text(),
)


class _IdentityId(BaseConverter):
    # Otherwise, the header Allow of /user/identities/authorize lists DELETE.
    regex = "(?!authorize$)[^/]+"


blueprint.record(lambda state: state.app.url_map.converters.update(identity_id=_IdentityId))


@blueprint.get("/user/identities/authorize")
@guard.access_token(Level.PROOF)
@limited("connect_identity", key=guard.caller_on_network)
@audited("change_refused")
def authorize_identity() -> Response:
    """Return the URL of the page where the user agrees to link an identity."""
    if request.method == "HEAD":
        current_asked().live_caller()
        return Response()
    asked = current_asked()
    identities.require_manual_linking(asked)
    query = read_query(_LinkingQuery)
    provider = oauth.provider_named(asked, query["provider"])
    proof = give_proof(asked, query, add("identity")) if "nonce" in query else None
    wish = {
        "scopes": query.get("scopes"),
        "redirect_to": checked_redirect(asked, query),
        "code_challenge": query.get("code_challenge"),
    }
    state = identities.begin(asked, provider, **wish, proof=proof)
    return jsonify(url=outgoing.own_url(latchkey.settings, "link-identity", {"flow": state}))


@blueprint.get("/link-identity")
@limited("open_linking")
@refuses_by_page
def linking_page() -> Response:
    """Show the user who will get the identity, since an attacker may have sent the link."""
    flow_token = read_query(form_schemas.LinkingForm)["flow"]
    flow = _linking_flow(flow_token)
    if not flow:
        return _dead_link()
    presets = latchkey.settings.providers
    return page(
        "link_identity.html",
        form_target=latchkey.redirects.checked(flow.redirect_to),
        provider=names.provider(flow.provider, presets),
        account=flow.email or flow.phone,
        known_by=flow.known_by and provider_title(flow.known_by),
        known_as=names.person(flow.known_as),
        flow=flow_token,
    )


@blueprint.post("/link-identity")
@own_form_or_json
@limited("begin_linking")
@refuses_by_page
def begin_linking() -> Response:
    """Bind the flow to the browser, and redirect it to the provider."""
    flow_token = read_form(form_schemas.LinkingForm)["flow"]
    flow = _linking_flow(flow_token)
    if not flow:
        return _dead_link()
    provider = oauth.find_provider(current_asked(), flow.provider)
    if provider is None:
        return providers.redirect_with_refusal(FlowEnd.of(flow), ApiError("oauth_provider_not_supported"))
    state, browser = one_time.new_token(), cookies.browser_secret(providers.COOKIES[provider.posts_form])
    hashes = {"browser_hash": one_time.hash_token(browser), "new_state_hash": one_time.hash_token(state)}
    with acts.on(latchkey.db, flow.user_id) as act:
        person = act.read(queries.select_person, user_id=flow.user_id, session_id=flow.session_id)
        if person is None or is_banned(person):
            return _dead_link()
        if end_of_session(person, facts.own_session_of(person), latchkey.policy):
            return _dead_link()
        bound_flow = queries.bind_oauth_flow(act, state_hash=one_time.hash_token(flow_token), **hashes)
    if bound_flow is None:
        return _dead_link()
    try:
        secrets = latchkey.sealer.open_json(bound_flow.secrets, bound_flow.id)
        return providers.redirect_to_provider(provider, state, secrets, browser, 303)
    except CannotOpen:
        return _dead_link()
    except oauth.ProviderRefusal as refusal:
        return providers.redirect_with_refusal(FlowEnd.of(flow), refusal)


def _linking_flow(token: str) -> "queries.SelectLinkingFlow | None":
    return queries.select_linking_flow(latchkey.db, state_hash=one_time.hash_token(token))


def _dead_link() -> Response:
    return page("link_dead.html", status=403)


@blueprint.delete("/user/identities/<identity_id:identity_id>")
@guard.access_token(Level.SESSION)
@limited("remove", key=guard.caller_on_network)
@audited("change_refused")
@asks_more
def delete_identity(identity_id: str) -> Response:
    asked = current_asked()
    body = read_body(schemas.Reauthentication)
    if not is_uuid(identity_id):
        current_asked().live_caller()
        raise ApiError("identity_not_found")
    proof = give_proof(asked, body, remove("identity", identity_id)) if body else None
    moment = identities.unlink(asked, identity_id, proof=proof)
    return jsonify(message="Identity unlinked", timestamp=moment)
