from collections.abc import Mapping

from flask import Blueprint, Response, jsonify

from auth.core.json_bodies import JsonObject
from auth.flows.factors import factor_schemas, factors, recovery_codes
from auth.flows.sessions.token_response import token_response
from auth.web import Level, asks_more, audited, guard, schemas
from auth.web.application import JsonResponse
from auth.web.asked import current_asked
from auth.web.context import latchkey
from auth.web.errors import ApiError, found
from auth.web.input import canonical_id, read_body
from auth.web.limits import limited
from sql import queries

blueprint = Blueprint("factors", __name__)


@blueprint.post("/factors")
@guard.access_token(Level.ENROL)
@limited("enrol_factor", key=guard.caller_on_network)
@audited("change_refused")
def enrol_factor() -> Response:
    """Begin to enrol a second factor, which counts once it is verified."""
    asked = current_asked()
    asked.live_caller()
    return jsonify(factors.enrol(asked, read_body(factor_schemas.FactorEnrolment)))


@blueprint.post("/factors/<factor_id>/challenge")
@guard.access_token(Level.SESSION)
@limited("challenge_factor", key=guard.caller_on_network)
def challenge_factor(factor_id: str) -> Response:
    asked = current_asked()
    asked.live_caller()
    site = read_body(factor_schemas.FactorChallenge).get("webauthn")
    return jsonify(factors.challenge(asked, _factor_id(factor_id), site))


@blueprint.post("/factors/<factor_id>/verify")
@guard.access_token(Level.SESSION)
@limited("verify_factor", key=guard.caller_on_network)
@audited("factor_refused", sign_in="factor")
@asks_more
def verify_factor(factor_id: str) -> Response:
    """Raise the session to `aal2`."""
    asked = current_asked()
    asked.live_caller()
    body, factor_id = read_body(factor_schemas.FactorVerification), _factor_id(factor_id)
    hook = asked.parts.token_hook
    if "webauthn" in body:
        session = factors.verify_webauthn(asked, factor_id, body["challenge_id"], body["webauthn"], hook)
    else:
        session = factors.verify_totp(asked, factor_id, body["challenge_id"], body["code"], hook)
    return JsonResponse(token_response(asked.parts, session))


@blueprint.delete("/factors/<factor_id>")
@guard.access_token(Level.SESSION)
@limited("remove", key=guard.caller_on_network)
@audited("change_refused")
@asks_more
def delete_factor(factor_id: str) -> Response:
    body, factor_id = read_body(schemas.Reauthentication), _factor_id(factor_id)
    factors.remove(current_asked(), factor_id, body)
    return jsonify(id=factor_id)


@blueprint.get("/admin/users/<user_id>/factors")
@guard.operator("users:read")
def list_any_factors(user_id: str) -> Response:
    row = queries.list_factors(latchkey.db, user_id=canonical_id(user_id, "user_not_found"))
    return JsonResponse(found(row, "user_not_found").factors)


@blueprint.put("/admin/users/<user_id>/factors/<factor_id>")
@guard.operator("users:write")
def rename_any_factor(user_id: str, factor_id: str) -> Response:
    name = read_body(factor_schemas.FactorChange)["friendly_name"]
    user_id, factor_id = canonical_id(user_id, "user_not_found"), _factor_id(factor_id)
    return JsonResponse(factors.rename_any(current_asked(), user_id, factor_id, name))


@blueprint.delete("/admin/users/<user_id>/factors/<factor_id>")
@guard.operator("users:write")
def delete_any_factor(user_id: str, factor_id: str) -> Response:
    user_id, factor_id = canonical_id(user_id, "user_not_found"), _factor_id(factor_id)
    factors.remove_any(current_asked(), user_id, factor_id)
    return jsonify(id=factor_id)


@blueprint.get("/factors/recovery-codes")
@guard.access_token(Level.SESSION)
def get_recovery_code_status() -> Response:
    status = recovery_codes.status(current_asked())
    if not status.total:
        raise ApiError("mfa_factor_not_found")
    return jsonify(_own_codes() | {"total": status.total, "remaining": status.remaining})


@blueprint.post("/factors/recovery-codes")
@guard.access_token(Level.SECOND_FACTOR)
@limited("create_recovery_codes", key=guard.caller_on_network)
@audited("change_refused")
def generate_recovery_codes() -> Response:
    """Create ten recovery codes, shown once, for a user who has none."""
    return _new_codes({True: "mfa_verified_factor_exists"})


@blueprint.post("/factors/recovery-codes/regenerate")
@guard.access_token(Level.SECOND_FACTOR)
@limited("create_recovery_codes", key=guard.caller_on_network)
@audited("change_refused")
def regenerate_recovery_codes() -> Response:
    """Create ten recovery codes, shown once, and void the older ones."""
    return _new_codes({False: "mfa_factor_not_found"})


@blueprint.delete("/factors/recovery-codes")
@guard.access_token(Level.SECOND_FACTOR)
@limited("remove", key=guard.caller_on_network)
@audited("change_refused")
def remove_recovery_codes() -> Response:
    recovery_codes.remove_all(current_asked(), read_body(schemas.Reauthentication))
    return jsonify(id=guard.caller_id())


@blueprint.post("/factors/recovery-codes/verify")
@guard.access_token(Level.SESSION)
@limited("verify_recovery_code", key=guard.caller_on_network)
@audited("factor_refused", sign_in="recovery_code")
def redeem_recovery_code() -> Response:
    """Raise the session to `aal2`."""
    asked = current_asked()
    asked.live_caller()
    code = read_body(factor_schemas.RecoveryCode)["code"]
    session = recovery_codes.verify(asked, code, asked.parts.token_hook)
    return JsonResponse(token_response(asked.parts, session))


def _new_codes(refusals: Mapping[bool, str]) -> Response:
    asked = current_asked()
    asked.live_caller()
    created = recovery_codes.create(asked, read_body(factor_schemas.RecoveryCodesBody), refusals=refusals)
    codes = {"friendly_name": created.friendly_name, "total": len(created.codes), "codes": created.codes}
    return jsonify(_own_codes() | codes)


def _own_codes() -> JsonObject:
    # A user has one set of codes, so its id is the user's.
    return {"id": guard.caller_id(), "type": "recovery_code"}


def _factor_id(text: str) -> str:
    return canonical_id(text, "mfa_factor_not_found")
