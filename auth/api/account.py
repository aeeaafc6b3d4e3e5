from flask import Blueprint, Response, jsonify

from auth.flows import organizations
from auth.flows.account import removal
from auth.flows.account.changes import change_user, delete_caller
from auth.flows.factors import factor_schemas
from auth.flows.messages.outgoing import TokenColumns
from auth.flows.passkeys import assertions
from auth.flows.sessions.token_response import token_response
from auth.flows.sign_in.reauthentication import record_reauthentication
from auth.rules.users import ADDRESS_KINDS
from auth.web import callers, current_g, dialect, fields, guard, limits, schemas
from auth.web.application import JsonResponse
from auth.web.asked import current_asked
from auth.web.context import latchkey
from auth.web.declarations import Level, asks_more, audited, counted, takes_metadata
from auth.web.errors import found
from auth.web.input import checked_redirect, json_body, read_body
from auth.web.limits import limited
from sql import queries

blueprint = Blueprint("user", __name__)


class _UserChange(schemas.Reauthentication, schemas.Challenged):
    email = fields.Email()
    phone = fields.Phone()
    channel = fields.Channel()
    remove = fields.Uuids()
    password = fields.Password()
    data = fields.Metadata()


@blueprint.get("/user")
@guard.access_token_or_api_key(Level.SESSION)
def get_user() -> Response:
    # Without `current_asked()`, which this route, the most frequent one, does not need.
    g, policy = current_g(), latchkey.policy
    if key := g.key_caller:
        ids = {"user_id": key.user_id, "api_key_id": key.api_key_id}
        of_key = found(queries.select_user_of_api_key(latchkey.db, **ids), "caller.user_not_found")
        if refusal := callers.refusal_of_key(of_key, key.expires_at, policy):
            raise callers.error_of(refusal)
        standing = organizations.standing_of_key(of_key.key_aal, of_key.now)
        return JsonResponse(organizations.user_object_for(of_key, standing))
    caller = g.caller
    row = found(queries.select_user(latchkey.db, **callers.caller_ids(caller)), "caller.user_not_found")
    if refusal := callers.refusal_of(row, caller, g.level, policy):
        raise callers.error_of(refusal)
    return JsonResponse(organizations.user_object_for(row, callers.standing_of(row, caller)))


@blueprint.get("/user/recent_changes")
@guard.access_token(Level.SESSION)
def get_recent_changes() -> Response:
    """Return the caller's additions of the last seven days, which PUT /user can remove."""
    asked = current_asked()
    person = asked.live_caller()
    return jsonify(recent_changes=removal.list_recent(asked.db, person.id))


@blueprint.put("/user")
@takes_metadata
@guard.access_token(Level.SESSION)
@limited("change_user", key=guard.caller_on_network)
@counted("change_address")
@audited("change_refused")
@asks_more
def update_user() -> Response:
    asked = current_asked()
    # Only now: a limit must count the request before its body is parsed.
    if any(json_body().get(name) is not None for name in ADDRESS_KINDS):
        limits.count("change_address", guard.caller_on_network())
    body = read_body(_UserChange)
    target, code_challenge = checked_redirect(asked, body), body.get("code_challenge")
    link = TokenColumns(redirect_to=target, code_challenge=code_challenge)
    return JsonResponse(change_user(asked, body, link).user_object)


@blueprint.delete("/user")
@guard.access_token(Level.AAL2)
@limited("delete_user", key=guard.caller_on_network)
@audited("change_refused")
def delete_user() -> Response:
    moment = delete_caller(current_asked(), read_body(schemas.Reauthentication))
    return jsonify(message="User deleted", timestamp=moment)


@blueprint.post("/reauthenticate")
@guard.access_token(Level.SESSION)
@limited("give_proof", key=guard.caller_on_network)
@audited("change_refused")
@dialect.translated(writes=lambda _body: {})
def confirm_reauthentication() -> Response:
    """Record a password, code or passkey in the caller's session, as a proof for the next 15 minutes."""
    asked = current_asked()
    asked.live_caller()
    body = read_body(factor_schemas.ProofBody)
    if "credential" in body:
        moment, session = assertions.prove(asked, body, asked.parts.token_hook)
        return JsonResponse(token_response(asked.parts, session, message="Reauthenticated", timestamp=moment))
    moment, _ = record_reauthentication(asked, body)
    return jsonify(message="Reauthenticated", timestamp=moment)
