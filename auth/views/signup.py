"""POST /signup: registration by email and password."""

import uuid

from flask import Blueprint, Response, json

from auth import one_time, schemas
from auth.context import latchkey
from auth.errors import ApiError
from auth.limits import limited
from auth.password_policy import check_strength
from auth.token_response import token_response
from auth.wire import client, json_response, read_body

blueprint = Blueprint("signup", __name__)


@blueprint.post("/signup")
@limited("signup")
def signup() -> Response:
    """Register a user. Where addresses must be confirmed, a taken one is answered like a free one."""
    body = read_body(schemas.Signup())
    settings = latchkey.settings
    if settings.disable_signup:
        raise ApiError(403, "signup_disabled", "Sign-up is disabled")
    if not settings.email_enabled:
        raise ApiError(400, "email_provider_disabled", "Sign-up by email is disabled")
    check_strength(settings, body["password"], [body["email"]], status=422)

    link = one_time.new()
    message_id = str(uuid.uuid4())
    hidden = settings.email_confirm_required and not settings.autoconfirm
    row = latchkey.db.one(
        "sign_up",
        email=body["email"],
        password_hash=latchkey.passwords.hash(body["password"]),
        user_metadata=body["data"],
        autoconfirm=settings.autoconfirm,
        hidden=hidden,
        token_id=link.id,
        token_hash=link.token_hash,
        link_lifetime=one_time.LINK_LIFETIME,
        redirect_to=latchkey.redirects.checked(body.get("redirect_to")),
        message_id=message_id,
        message_variables={"redirect_to": body.get("redirect_to")},
        message_secret=latchkey.sealer.seal(link.token, message_id),
        **client(),
    )
    if not row.created and not hidden:
        raise ApiError(409, "user_already_exists", "A user with this email address has already been registered")
    latchkey.deliverer.wake()
    signed_in = token_response(row, "password") if row.session_id else {}
    # The specification shows a new user without app metadata.
    return json_response(json.dumps(json.loads(row.user_object) | {"app_metadata": {}} | signed_in), 201)
