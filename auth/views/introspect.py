from flask import Blueprint, Response, jsonify

from auth.context import latchkey
from auth.tokens.access_tokens import LACKS_STEP, SECOND_STEP, InvalidAccessToken
from auth.web import Level, accepts_forms, guard, schemas, takes_tokens
from auth.web.input import read_body

blueprint = Blueprint("introspect", __name__)

_INACTIVE = {"active": False}


@blueprint.post("/introspect")
@accepts_forms
@takes_tokens
@guard.service_role
def introspect() -> Response:
    """Return the claims of an access token if it is valid at this moment (RFC 7662)."""
    token = read_body(schemas.Introspection())["token"]
    try:
        caller = latchkey.access_tokens.verify(token)
    except InvalidAccessToken:
        return jsonify(_INACTIVE)
    # Refuses tokens from before the user verified a factor too, which look complete.
    needs_step = latchkey.settings.mfa_tokens == SECOND_STEP or caller.aal == LACKS_STEP
    row = latchkey.db.one(
        "select_caller",
        caller_id=caller.user_id,
        caller_session_id=caller.session_id,
        caller_expires_at=caller.expires_at,
        caller_aal=caller.aal,
        caller_level=Level.AAL1 if needs_step else Level.SESSION,
    )
    if row is None or row.state != "live":
        return jsonify(_INACTIVE)
    # A session loses the level that came from a removed factor.
    level = {"aal": min(caller.aal, row.aal)}
    return jsonify({"active": True} | latchkey.access_tokens.claims(token) | level)
