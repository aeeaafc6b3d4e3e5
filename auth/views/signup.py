"""POST /signup: registration by email or phone, and password."""

from flask import Blueprint, Response, json

from auth.context import latchkey
from auth.flows import outgoing
from auth.flows.password_attempts import in_turn
from auth.flows.token_response import tokens
from auth.passwords.hashing import Slot
from auth.passwords.policy import check_strength
from auth.web import schemas
from auth.web.application import JsonResponse
from auth.web.errors import ApiError
from auth.web.limits import limited
from auth.web.wire import checked_redirect, client, read_body

blueprint = Blueprint("signup", __name__)


@blueprint.post("/signup")
@in_turn
@limited("signup")
def signup(slot: Slot) -> Response:
    """Register a user. Where addresses must be confirmed, a taken one is answered like a free one."""
    body = read_body(schemas.Signup())
    settings = latchkey.settings
    email, phone = body.get("email"), body.get("phone")
    address = email or body["phone"]
    if settings.disable_signup:
        raise ApiError(403, "signup_disabled", "Sign-up is disabled")
    outgoing.check_channel(email, phone, doing="Sign-up")
    check_strength(settings, body["password"], [email, phone], status=422)

    must_confirm = settings.email_confirm_required if email else settings.phone_confirm_required
    hidden = must_confirm and not settings.autoconfirm
    redirect_to = checked_redirect(body)
    row = latchkey.db.one(
        "sign_up",
        **outgoing.secrets_for(address),
        **outgoing.quota(address),
        email=email,
        phone=phone,
        password_hash=slot.hash(body["password"]),
        user_metadata=body["data"],
        autoconfirm=settings.autoconfirm,
        hidden=hidden,
        redirect_to=redirect_to,
        code_challenge=body.get("code_challenge"),
        message_variables=outgoing.variables(redirect_to=redirect_to),
        **client(),
    )
    if not row.created and not hidden:
        raise ApiError(409, "user_already_exists", f"A user with this {'email address' if email else 'phone number'} has already been registered")
    latchkey.deliverer.wake()
    user = json.loads(row.user_object)
    signed_in = tokens(row, "password") | {"user": user} if row.session_id else {}
    # The specification shows a new user without app metadata.
    return JsonResponse(json.dumps(user | {"app_metadata": {}} | signed_in), 201)
