"""POST /admin/generate_link and POST /admin/invite: links that administrators hand on, or have sent."""

from flask import Blueprint, Response, json

from auth.context import latchkey
from auth.flows import outgoing
from auth.passwords.policy import check_strength
from auth.tokens import one_time
from auth.web import guard, schemas
from auth.web.application import JsonResponse
from auth.web.errors import ApiError
from auth.web.wire import checked_redirect, read_body

blueprint = Blueprint("admin_links", __name__)

# These make the user when there is none.
_CREATING = ("signup", "invite")


@blueprint.post("/admin/generate_link")
@guard.service_role
def generate_link() -> Response:
    """Make a link, and the code beside it, without sending them."""
    body = read_body(schemas.NewLink())
    settings = latchkey.settings
    # Whether the mail goes to the old or the new address is the caller's to decide; what is confirmed is the new one.
    purpose = "email_change" if body["type"].startswith("email_change") else body["type"]
    new_email = body["new_email"] if purpose == "email_change" else None
    password_hash = None
    if "password" in body and purpose in ("signup", "recovery"):
        check_strength(settings, body["password"], [body["email"]])
        password_hash = latchkey.passwords.hash(body["password"])
    redirect_to = checked_redirect(body) or settings.site_url
    token = one_time.new_token()
    # An invitation is a link alone.
    code = one_time.new_code() if purpose != "invite" else ""
    row = latchkey.db.one(
        "generate_link",
        purpose=purpose,
        email=body["email"],
        new_email=new_email,
        creates=purpose in _CREATING,
        user_metadata=body["data"],
        password_hash=password_hash,
        token_id=outgoing.new_id(),
        token_hash=one_time.hash_token(token),
        link_lifetime=one_time.LINK_LIFETIME,
        code_mac=latchkey.codes.mac(new_email or body["email"], code),
        redirect_to=redirect_to,
    )
    if row is None:
        raise ApiError("email.user_not_found")
    if row.is_taken:
        raise ApiError("email_exists")
    link = {
        "action_link": outgoing.own_url("verify", {"token": token, "type": purpose, "redirect_to": redirect_to}),
        "email_otp": code,
        "hashed_token": token,
        "verification_type": body["type"],
        "redirect_to": redirect_to,
    }
    return JsonResponse(json.dumps(json.loads(row.user_object) | link))


@blueprint.post("/admin/invite")
@blueprint.post("/invite")
@guard.service_role
def invite() -> Response:
    """Invite somebody by mail."""
    body = read_body(schemas.Invitation())
    settings = latchkey.settings
    email = body["email"]
    redirect_to = checked_redirect(body)
    secrets = outgoing.secrets_for(email, code=False) | {"link_lifetime": one_time.INVITATION_LIFETIME}
    del secrets["code_mac"], secrets["code_lifetime"]
    # The address first: what it has no room for does not count for the service.
    windows = [(f"invite {email}", settings.rate_limit_invite_per_address), ("invite", settings.rate_limit_invite)]
    row = latchkey.db.one(
        "invite_user",
        email=email,
        user_metadata=body["data"],
        app_metadata=body["options"].get("data", {}),
        redirect_to=redirect_to,
        message_variables=outgoing.variables(redirect_to=redirect_to),
        **secrets,
        **outgoing.as_parameters(windows if settings.rate_limits_enabled else []),
    )
    if row.state == "over_email_send_rate_limit":
        raise outgoing.over_quota(row.state, row)
    if row.state == "email_exists":
        raise ApiError("email_exists")
    outgoing.note_quota(row)
    return JsonResponse(f'{{"user": {row.user_object}, "message_id": "{secrets["message_id"]}"}}')
