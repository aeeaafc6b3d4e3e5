from flask import Blueprint, Response

from auth.account.sign_up import sign_up
from auth.context import latchkey
from auth.pages.page import identifier, to_own
from auth.pages.problems import Problem, shows
from auth.pages.sign_in import (
    address_of,
    code_form,
    code_page,
    destination,
    form_page,
    send_code,
    submit_code,
)
from auth.sign_in import browser_sessions, waiting
from auth.sign_in.arrivals import arrive
from auth.sign_in.passwords import queued
from auth.web import audited, form_schemas
from auth.web.forms import own_form
from auth.web.input import read_form
from auth.web.limits import limited

blueprint = Blueprint("sign_up", __name__)


def _form(problem: Problem | None = None) -> Response:
    return form_page("sign_up.html", "sign-up", problem=problem)


_code_form = code_form("sign-up", _form)


@blueprint.get("/sign-up")
def show_sign_up() -> Response:
    """Ask for the address and the password of a new account."""
    if browser_sessions.resume() or identifier() is None:
        return to_own(destination().path("sign-in"))
    return _form()


@blueprint.post("/sign-up")
@shows(_form)
@own_form
@queued
@limited("signup")
@audited("sign_up_refused")
def submit_sign_up() -> Response:
    """Register a user and ask for the code that is sent; a taken address gets the same page."""
    form, to = read_form(form_schemas.SignInForm()), destination()
    body = {**form, "data": {}, "redirect_to": to.own_url("sign-in"), **waiting.bound()}
    row = sign_up(body)
    if latchkey.settings.autoconfirm:
        return arrive(row, to)
    return code_page("sign-up", address_of(form), has_asked=True)


@blueprint.post("/sign-up/code")
@shows(_code_form)
@own_form
@limited("recover")
def request_sign_up_code() -> Response:
    """Send the confirmation again."""
    return send_code("sign-up", destination().own_url("sign-in"), "signup", "sms_signup")


@blueprint.post("/sign-up/verify")
@shows(_code_form)
@own_form
@limited("verify")
@audited("verification_refused")
def submit_sign_up_code() -> Response:
    return submit_code("sign-up", "signup")
