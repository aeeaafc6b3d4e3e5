"""Pages that wait until the link of their mail is opened, perhaps in another browser."""

from flask import Blueprint, Response, jsonify, request

from auth.pages.page import text
from auth.pages.problems import Problem, shows
from auth.pages.sign_in import LINKS, code_page, go_on_if_used, sign_in_form
from auth.sign_in import waiting
from auth.web import form_schemas
from auth.web.forms import own_form
from auth.web.input import read_form
from auth.web.limits import limited

blueprint = Blueprint("waiting", __name__)


def not_yet() -> Problem:
    """Return what to tell a user whose link has not been opened."""
    return Problem(text("code", "not_yet"), None, 200, {}, "otp_expired", "otp_expired")


def _form(problem: Problem) -> Response:
    path, typed = request.form.get("page", ""), request.form.get("email", "")
    if path not in LINKS or not typed or problem.error_code == "insufficient_permissions":
        # It continues with the account that another window has signed in.
        return sign_in_form(problem)
    return code_page(path, typed, problem=problem)


@blueprint.post("/waiting/state")
@own_form
@limited("waiting")
def show_waiting() -> Response:
    """Say whether the link is used, to the browser that asked for it."""
    form = read_form(form_schemas.WaitingForm())
    return jsonify(is_used=waiting.used_link(form["email"], LINKS[form["page"]]) is not None)


@blueprint.post("/waiting")
@shows(_form)
@own_form
@limited("waiting")
def submit_waiting() -> Response:
    """Continue if the link was used and this browser gains nothing by it; otherwise show the form again."""
    form = read_form(form_schemas.WaitingForm())
    return go_on_if_used(form["page"], form["email"]) or _form(not_yet())
