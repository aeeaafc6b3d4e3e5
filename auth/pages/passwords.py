from flask import Blueprint, Response, request

from auth.context import latchkey
from auth.flows import browser_sessions, removal, waiting
from auth.flows.arrivals import go_on
from auth.flows.browser_sessions import signed_in
from auth.flows.message_requests import request_message
from auth.flows.password_attempts import queued
from auth.flows.user_changes import change_user
from auth.pages.confirm import require_proof
from auth.pages.page import to_own
from auth.pages.problems import Problem, shows
from auth.pages.sign_in import address_of, code_page, destination, form_page, submit_code
from auth.web import form_schemas, guard
from auth.web.forms import own_form
from auth.web.input import read_form
from auth.web.limits import limited

blueprint = Blueprint("passwords", __name__)


def _forgot_form(problem: Problem | None = None) -> Response:
    return form_page("forgot_password.html", "forgot-password", problem=problem)


def _code_form(problem: Problem | None = None) -> Response:
    typed = request.form.get("email", "")
    return code_page("forgot-password", typed, problem=problem) if typed else _forgot_form(problem)


def _request_form(problem: Problem | None = None) -> Response:
    return _code_form(problem) if "again" in request.form else _forgot_form(problem)


def _new_form(problem: Problem | None = None) -> Response:
    shown = {"known": browser_sessions.resume(), "changes": 0}
    if destination().then:
        # The account, which lists them, is not the next page.
        shown["changes"] = len(removal.list_recent(latchkey.db, guard.caller_id()))
    return form_page("new_password.html", "new-password", problem=problem, **shown)


@blueprint.get("/forgot-password")
def show_forgot_password() -> Response:
    """Ask for the email or phone of the account."""
    return _forgot_form()


@blueprint.post("/forgot-password")
@shows(_request_form)
@own_form
@limited("recover")
def submit_forgot_password() -> Response:
    """Send a code, by mail with a link, if the address has a user, and ask for the code."""
    form = read_form(form_schemas.AddressForm())
    back = destination().before_password().own_url("new-password")
    body = {**form, "redirect_to": back, **waiting.bound()}
    request_message("recovery" if "email" in form else "sms", body)
    return code_page("forgot-password", address_of(form), has_asked=True)


@blueprint.post("/forgot-password/verify")
@shows(_code_form)
@own_form
@limited("verify")
def submit_recovery_code() -> Response:
    return submit_code("forgot-password", "recovery")


@blueprint.get("/.well-known/change-password")
def change_password() -> Response:
    """Lead password managers to the form (W3C, A Well-Known URL for Changing Passwords)."""
    return to_own("sign-in?next=new-password")


@blueprint.get("/new-password")
@signed_in
def show_new_password() -> Response:
    """Ask for a new password."""
    require_proof()
    return _new_form()


@blueprint.post("/new-password")
@signed_in
@shows(_new_form)
@own_form
@queued
@limited("user_changes", key=guard.caller_on_network)
def submit_new_password() -> Response:
    change_user(read_form(form_schemas.PasswordForm()))
    return go_on(destination(), done="password")
