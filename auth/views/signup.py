from flask import Blueprint, Response, json

from auth.context import latchkey
from auth.flows import outgoing
from auth.flows.password_attempts import queued
from auth.flows.sign_up import sign_up_confirmed, sign_up_unconfirmed
from auth.flows.token_response import tokens
from auth.passwords.policy import check_strength
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
    body, settings = read_body(schemas.Signup()), latchkey.settings
    email, phone, password = body.get("email"), body.get("phone"), body["password"]
    if settings.disable_signup:
        raise ApiError("signup_disabled")
    outgoing.check_channel(email, phone, doing="Sign-up")
    check_strength(settings, password, [email, phone])

    sign_up = sign_up_confirmed if settings.autoconfirm else sign_up_unconfirmed
    row = sign_up(body, latchkey.passwords.hash(password))
    user = json.loads(row.user_object)
    signed_in = tokens(row, "password") | {"user": user} if settings.autoconfirm else {}
    # The specification shows a new user without app metadata.
    return JsonResponse(json.dumps(user | {"app_metadata": {}} | signed_in), 201)
