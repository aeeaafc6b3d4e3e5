from flask import Blueprint, Response, request

from auth.context import latchkey
from auth.flows import browser_sessions, removal
from auth.flows.arrivals import go_on, redirect_signed_in
from auth.flows.browser_sessions import signed_in
from auth.flows.message_requests import request_message
from auth.flows.password_attempts import queued
from auth.flows.user_changes import change_user
from auth.flows.verification import by_code, spend
from auth.pages.confirm import require_proof
from auth.pages.page import to_own
from auth.pages.problems import Problem, shows
from auth.pages.sign_in import address_of, code_page, destination, form_page
from auth.web import form_schemas, guard
from auth.web.forms import own_form
from auth.web.input import read_form
from auth.web.limits import limited

blueprint = Blueprint("passwords", __name__)


def _forgot_form(problem: Problem | None = None) -> Response:
    return form_page("forgot_password.html", "forgot-password", problem=problem)


def _code_form(problem: Problem | None = None) -> Response:
    typed = request.form.get("email", "")
    path = "forgot-password"
    return code_page(path, typed, again=path, problem=problem) if typed else _forgot_form(problem)


def _request_form(problem: Problem | None = None) -> Response:
    return _code_form(problem) if "again" in request.form else _forgot_form(problem)


def _new_form(problem: Problem | None = None) -> Response:
    shown = {"known": browser_sessions.resume(), "changes": 0}
    if destination().then:
        # The account, which lists them, is not the next page.
        shown["changes"] = len(removal.list_recent(latchkey.db, guard.caller_id()))
    return form_page("new_password.html", "new-password", problem=problem, **shown)


def _next_page() -> str:
    return destination().before_password().own_url("new-password")


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
    form, back = read_form(form_schemas.AddressForm()), _next_page()
    request_message("recovery" if "email" in form else "sms", {**form, "redirect_to": back})
    return code_page("forgot-password", address_of(form), again="forgot-password")


@blueprint.post("/forgot-password/verify")
@shows(_code_form)
@own_form
@limited("verify")
def submit_recovery_code() -> Response:
    form = read_form(form_schemas.CodeForm())
    proof = by_code(address_of(form), form["code"])
    outcome = spend("recovery" if "email" in form else "sms", proof, redirects=False)
    return redirect_signed_in(_next_page(), outcome)


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
@limited("user_changes", key=guard.caller_id)
def submit_new_password() -> Response:
    change_user(read_form(form_schemas.PasswordForm()))
    return go_on(destination(), done="password")
