"""The devices and the connected accounts of the user."""

from flask import Blueprint, Response, request

from auth.account import identities
from auth.context import latchkey
from auth.messages.outgoing import own_url
from auth.pages.page import to_own
from auth.sign_in import browser_sessions, oauth
from auth.sign_in.browser_sessions import signed_in
from auth.web import Level, audited, form_schemas, g, guard
from auth.web.forms import own_form
from auth.web.input import known_id, read_form
from auth.web.limits import limited

blueprint = Blueprint("access", __name__)
_ID = form_schemas.IdForm()


@blueprint.post("/account/sessions/end")
@signed_in(Level.AAL2)
@own_form
@limited("user_changes", key=guard.caller_on_network)
def end_device() -> Response:
    """End one of the user's sessions."""
    session_id = known_id(read_form(_ID)["id"], "device.not_found")
    # If it has ended meanwhile, so much the better.
    guard.admit(latchkey.db.one("end_session", session_id=session_id, **guard.caller()))
    if session_id == g.caller.session_id:
        return to_own("sign-in")
    return to_own("account?done=device#devices")


@blueprint.post("/account/sessions/end-others")
@signed_in(Level.AAL2)
@own_form
@limited("logout", key=guard.caller_on_network)
def end_other_devices() -> Response:
    browser_sessions.end("others")
    return to_own("account?done=devices#devices")


@blueprint.post("/account/connect")
@signed_in(Level.PROOF)
@own_form
@limited("user_changes", key=guard.caller_on_network)
@audited("change_refused")
def connect_provider() -> Response:
    """Begin to link an identity; the page that confirms this names the account."""
    identities.require_manual_linking()
    provider = oauth.provider_named(request.form.get("provider", ""))
    back = f"{latchkey.settings.base_url}/account"
    state = identities.begin(provider, scopes=None, redirect_to=back, given=None)
    return to_own(own_url("link-identity", {"flow": state}).rpartition("/")[2])


@blueprint.post("/account/disconnect")
@signed_in(Level.SESSION)
@own_form
@limited("user_changes", key=guard.caller_on_network)
@audited("change_refused")
def disconnect_provider() -> Response:
    identities.require_manual_linking()
    identities.unlink(known_id(read_form(_ID)["id"], "identity_not_found"))
    return to_own("account?done=disconnected#connected")
