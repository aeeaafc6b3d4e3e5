from flask import Blueprint, Response, request

from auth.context import latchkey
from auth.flows import browser_sessions
from auth.flows.arrivals import arrive
from auth.flows.message_requests import request_message
from auth.flows.password_attempts import queued
from auth.flows.sign_up import sign_up
from auth.flows.verification import by_code, spend
from auth.pages.page import to_own
from auth.pages.problems import Problem, shows
from auth.pages.sign_in import code_page, destination, form_page
from auth.web import schemas
from auth.web.forms import own_form
from auth.web.input import read_form
from auth.web.limits import limited

blueprint = Blueprint("sign_up", __name__)


def _form(problem: Problem | None = None) -> Response:
    return form_page("sign_up.html", "sign-up", problem=problem)


def _code_form(problem: Problem | None = None) -> Response:
    typed = request.form.get("email", "")
    return code_page("sign-up", typed, again="sign-up/code", problem=problem) if typed else _form(problem)


@blueprint.get("/sign-up")
def show_sign_up() -> Response:
    """Ask for email and password of a new account."""
    return to_own(destination().path("sign-in")) if browser_sessions.resume() else _form()


@blueprint.post("/sign-up")
@shows(_form)
@own_form
@queued
@limited("signup")
def submit_sign_up() -> Response:
    """Register a user and ask for the code of the mail; a taken address gets the same page."""
    form, to = read_form(schemas.SignInForm()), destination()
    body = {**form, "data": {}, "redirect_to": to.own_url("sign-in")}
    row = sign_up(body)
    if latchkey.settings.autoconfirm:
        return arrive(row, to)
    return code_page("sign-up", form["email"], again="sign-up/code")


@blueprint.post("/sign-up/code")
@shows(_code_form)
@own_form
@limited("recover")
def request_sign_up_code() -> Response:
    """Send the confirmation again."""
    email = read_form(schemas.EmailForm())["email"]
    request_message("signup", {"email": email, "redirect_to": destination().own_url("sign-in")})
    return code_page("sign-up", email, again="sign-up/code")


@blueprint.post("/sign-up/verify")
@shows(_code_form)
@own_form
@limited("verify")
def submit_sign_up_code() -> Response:
    form = read_form(schemas.CodeForm())
    outcome = spend("signup", by_code(form["email"], form["code"]), redirects=False)
    return arrive(outcome.session, destination())
