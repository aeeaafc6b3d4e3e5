from flask import Blueprint, Response, jsonify

from auth.domain.account import factors, recovery_codes
from auth.domain.sessions.token_response import token_response
from auth.web import Level, asks_more, audited, factor_schemas, guard, schemas
from auth.web.application import JsonResponse
from auth.web.context import latchkey
from auth.web.errors import found
from auth.web.input import known_id, read_body
from auth.web.limits import limited
from sql import queries

blueprint = Blueprint("factors", __name__)


@blueprint.post("/factors")
@guard.access_token(Level.ENROL)
@limited("enrol_factor", key=guard.caller_on_network)
@audited("change_refused")
def enrol_factor() -> Response:
    """Begin to enrol a second factor, which counts once it is verified."""
    known = guard.live_caller()
    return jsonify(factors.enrol(known, read_body(factor_schemas.FactorEnrolment())))


@blueprint.post("/factors/<factor_id>/challenge")
@guard.access_token(Level.SESSION)
@limited("challenge_factor", key=guard.caller_on_network)
def challenge_factor(factor_id: str) -> Response:
    guard.live_caller()
    site = read_body(factor_schemas.FactorChallenge()).get("webauthn")
    return jsonify(factors.challenge(_factor_id(factor_id), site))


@blueprint.post("/factors/<factor_id>/verify")
@guard.access_token(Level.SESSION)
@limited("verify_factor", key=guard.caller_on_network)
@audited("factor_refused", sign_in="factor")
@asks_more
def verify_factor(factor_id: str) -> Response:
    """Raise the session to `aal2`."""
    guard.live_caller()
    body, factor_id = read_body(factor_schemas.FactorVerification()), _factor_id(factor_id)
    if "webauthn" in body:
        session = factors.verify_webauthn(factor_id, body["challenge_id"], body["webauthn"], for_client=True)
    else:
        session = factors.verify_totp(factor_id, body["challenge_id"], body["code"], for_client=True)
    return token_response(session)


@blueprint.delete("/factors/<factor_id>")
@guard.access_token(Level.SESSION)
@limited("remove", key=guard.caller_on_network)
@audited("change_refused")
@asks_more
def delete_factor(factor_id: str) -> Response:
    body, factor_id = read_body(schemas.Reauthentication()), _factor_id(factor_id)
    factors.remove(factor_id, body)
    return jsonify(id=factor_id)


@blueprint.get("/admin/users/<user_id>/factors")
@guard.service_role
def list_any_factors(user_id: str) -> Response:
    row = queries.list_factors(latchkey.db, user_id=known_id(user_id, "user_not_found"))
    return JsonResponse(found(row, "user_not_found").factors)


@blueprint.delete("/admin/users/<user_id>/factors/<factor_id>")
@guard.service_role
def delete_any_factor(user_id: str, factor_id: str) -> Response:
    user_id, factor_id = known_id(user_id, "user_not_found"), known_id(factor_id, "mfa_factor_not_found")
    factors.remove_any(user_id, factor_id)
    return jsonify(id=factor_id)


@blueprint.post("/recovery_codes")
@guard.access_token(Level.SECOND_FACTOR)
@limited("create_recovery_codes", key=guard.caller_on_network)
@audited("change_refused")
def create_recovery_codes() -> Response:
    """Create ten recovery codes, shown once, and void older ones."""
    guard.live_caller()
    codes, created_at = recovery_codes.create(read_body(schemas.Reauthentication()))
    return jsonify(codes=codes, created_at=created_at)


@blueprint.get("/recovery_codes")
@guard.access_token(Level.SESSION)
def get_recovery_codes() -> Response:
    return jsonify(recovery_codes.status())


@blueprint.post("/recovery_codes/verify")
@guard.access_token(Level.SESSION)
@limited("verify_recovery_code", key=guard.caller_on_network)
@audited("factor_refused", sign_in="recovery_code")
def verify_recovery_code() -> Response:
    guard.live_caller()
    code = read_body(factor_schemas.RecoveryCode())["code"]
    return token_response(recovery_codes.verify(code, for_client=True))


def _factor_id(text: str) -> str:
    return known_id(text, "mfa_factor_not_found")
