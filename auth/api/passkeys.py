from flask import Blueprint, Response, jsonify

from auth.flows.factors import factor_schemas
from auth.flows.passkeys import passkeys
from auth.flows.passkeys.assertions import begin_sign_in, sign_in
from auth.flows.sessions.token_response import token_response
from auth.web import Level, asks_more, audited, guard, schemas
from auth.web.application import JsonResponse
from auth.web.asked import current_asked
from auth.web.context import latchkey
from auth.web.errors import found
from auth.web.input import canonical_id, read_body
from auth.web.limits import limited
from sql import queries

blueprint = Blueprint("passkeys", __name__)


@blueprint.post("/passkeys/registration/options")
@guard.access_token(Level.ENROL)
@limited("begin_passkey", key=guard.caller_on_network)
@audited("change_refused")
def begin_passkey_registration() -> Response:
    asked = current_asked()
    passkeys.require_enabled(asked)
    body = read_body(factor_schemas.PasskeyOptionsRequest)
    return jsonify(passkeys.begin_registration(asked, body))


@blueprint.post("/passkeys/registration/verify")
@guard.access_token(Level.ENROL)
@limited("add_passkey", key=guard.caller_on_network)
@audited("change_refused")
def finish_passkey_registration() -> Response:
    asked = current_asked()
    passkeys.require_enabled(asked)
    person = asked.live_caller()
    body = read_body(factor_schemas.PasskeyResponse)
    passkey, _ = passkeys.finish_registration(asked, person, body)
    return JsonResponse(passkey)


@blueprint.post("/passkeys/authentication/options")
@limited("begin_passkey_sign_in")
def begin_passkey_sign_in() -> Response:
    # This works while passkeys are disabled too: those that users have still answer POST /reauthenticate.
    return jsonify(begin_sign_in(current_asked()))


@blueprint.post("/passkeys/authentication/verify")
@limited("sign_in_with_passkey")
@audited("sign_in_refused", sign_in="passkey")
def finish_passkey_sign_in() -> Response:
    asked = current_asked()
    passkeys.require_enabled(asked)
    session = sign_in(asked, read_body(factor_schemas.PasskeyResponse), asked.parts.token_hook)
    return JsonResponse(token_response(asked.parts, session))


@blueprint.get("/passkeys")
@guard.access_token(Level.SESSION)
def list_passkeys() -> Response:
    person = current_asked().live_caller()
    return JsonResponse(queries.list_passkeys(latchkey.db, user_id=person.id).passkeys)


@blueprint.patch("/passkeys/<passkey_id>")
@guard.access_token(Level.AAL2)
@limited("rename", key=guard.caller_on_network)
def rename_passkey(passkey_id: str) -> Response:
    asked = current_asked()
    asked.live_caller()
    name = read_body(factor_schemas.PasskeyChange)["friendly_name"]
    passkey_id = canonical_id(passkey_id, "webauthn_credential_not_found")
    return JsonResponse(passkeys.rename(asked, passkey_id, name))


@blueprint.delete("/passkeys/<passkey_id>")
@guard.access_token(Level.SESSION)
@limited("remove", key=guard.caller_on_network)
@audited("change_refused")
@asks_more
def delete_passkey(passkey_id: str) -> Response:
    asked = current_asked()
    asked.live_caller()
    passkey_id = canonical_id(passkey_id, "webauthn_credential_not_found")
    passkeys.remove(asked, passkey_id, read_body(schemas.Reauthentication))
    return jsonify(id=passkey_id)


@blueprint.get("/admin/users/<user_id>/passkeys")
@guard.operator("users:read")
def list_any_passkeys(user_id: str) -> Response:
    user_id = canonical_id(user_id, "user_not_found")
    found(queries.select_addresses(latchkey.db, id=user_id), "user_not_found")
    return JsonResponse(queries.list_passkeys(latchkey.db, user_id=user_id).passkeys)


@blueprint.delete("/admin/users/<user_id>/passkeys/<passkey_id>")
@guard.operator("users:write")
def delete_any_passkey(user_id: str, passkey_id: str) -> Response:
    read_body(schemas.AdminInput)
    user_id = canonical_id(user_id, "user_not_found")
    passkey_id = canonical_id(passkey_id, "webauthn_credential_not_found")
    passkeys.remove_any(current_asked(), user_id, passkey_id)
    return jsonify(id=passkey_id)
