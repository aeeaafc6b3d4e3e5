from flask import Blueprint, Response, jsonify

from auth.core.passwords.policy import WeakPassword, check_strength
from auth.domain.account import removal
from auth.domain.account.changes import change_user
from auth.domain.sessions import browser_sessions
from auth.domain.sessions.browser_sessions import signed_in
from auth.domain.sign_in.arrivals import go_on
from auth.pages.confirm import require_proof
from auth.pages.sign_in import code_form, forgot_form, send_code, submit_code
from auth.web import Level, form_schemas, guard
from auth.web.context import latchkey
from auth.web.html.destinations import destination, form_page
from auth.web.html.page import text, to_own
from auth.web.html.problems import Problem, form
from auth.web.input import read_form

blueprint = Blueprint("passwords", __name__)


_code_form = code_form("forgot-password", forgot_form)
_request_form = code_form("forgot-password", forgot_form, is_asked_again=True)


def _new_form(problem: Problem | None = None) -> Response:
    known = browser_sessions.resume()
    # If the account, which lists them, is not the next page.
    changes = removal.list_recent(latchkey.db, guard.caller_id()) if destination().then else []
    return form_page("new_password.html", "new-password", problem=problem, known=known, changes=len(changes))


@blueprint.get("/forgot-password")
def show_forgot_password() -> Response:
    return forgot_form()


@blueprint.post("/forgot-password")
@form("request_recovery", _request_form)
def submit_forgot_password() -> Response:
    """Send a code, by email with a link, if the address has a user, and ask for the code."""
    return send_code("forgot-password", destination().before_password().own_url("new-password"), "recovery")


@blueprint.post("/forgot-password/verify")
@form("verify", _code_form, refusal="verification_refused")
def submit_recovery_code() -> Response:
    return submit_code("forgot-password", "recovery")


@blueprint.get("/.well-known/change-password")
def change_password() -> Response:
    """Lead password managers to the form (W3C, A Well-Known URL for Changing Passwords)."""
    return to_own("sign-in?next=new-password")


@blueprint.post("/new-password/common")
@form("check_common")
def check_common() -> Response:
    """Say whether a password that is being chosen is easy to guess. It is neither stored nor logged."""
    sent = read_form(form_schemas.CommonForm())
    try:
        check_strength(latchkey.settings, sent["password"], [sent.get("email", "").lower()])
    except WeakPassword as weak:
        return jsonify(problem=weak.guessed and text("errors", f"weak_{weak.guessed}"))
    return jsonify(problem=None)


@blueprint.get("/new-password")
@signed_in(Level.AAL2)
def show_new_password() -> Response:
    require_proof()
    return _new_form()


@blueprint.post("/new-password")
@form("change_user", _new_form, level=Level.AAL2, is_queued=True, refusal="change_refused")
def submit_new_password() -> Response:
    change_user(read_form(form_schemas.PasswordForm()))
    return go_on(destination(), done="password")
