from flask import Blueprint, Response, json

from auth.context import latchkey
from auth.flows.password_attempts import queued
from auth.flows.sign_up import sign_up
from auth.flows.token_response import tokens
from auth.web import schemas
from auth.web.application import JsonResponse
from auth.web.errors import ApiError
from auth.web.input import json_body, read_body
from auth.web.limits import limited

blueprint = Blueprint("signup", __name__)


@blueprint.post("/signup")
@queued
@limited("signup")
def signup() -> Response:
    """Register a user. If addresses must be confirmed, the response is the same for a taken one."""
    if all(json_body().get(name) is None for name in ("email", "phone", "password")):
        raise ApiError("anonymous_provider_disabled")
    row = sign_up(read_body(schemas.Signup()))
    user = json.loads(row.user_object)
    signed_in = tokens(row) | {"user": user} if latchkey.settings.autoconfirm else {}
    # The specification shows a new user without app metadata.
    return JsonResponse(json.dumps(user | {"app_metadata": {}} | signed_in), 201)
