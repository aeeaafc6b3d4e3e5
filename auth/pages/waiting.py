"""Pages that wait until the emailed link is opened."""

from flask import Blueprint, Response, jsonify, request

from auth.domain.sign_in import waiting
from auth.pages.sign_in import LINKS, code_page, not_yet, redirect_if_used, sign_in_page
from auth.web import form_schemas
from auth.web.html.problems import Problem, form
from auth.web.input import read_form

blueprint = Blueprint("waiting", __name__)


@blueprint.post("/waiting/state")
@form("poll_link")
def show_waiting() -> Response:
    """Tell the browser that requested a link whether it was used."""
    sent = read_form(form_schemas.WaitingForm())
    return jsonify(is_used=waiting.used_link(sent["email"], LINKS[sent["page"]]) is not None)


@blueprint.post("/waiting")
@form("wait_for_link")
def submit_waiting(problem: Problem | None = None) -> Response:
    """Continue if the link was used and this browser gains nothing by it; otherwise show the form again."""
    if problem is None:
        sent = read_form(form_schemas.WaitingForm())
        if response := redirect_if_used(sent["page"], sent["email"]):
            return response
        problem = not_yet()
    path, typed = request.form.get("page", ""), request.form.get("email", "")
    if path not in LINKS or not typed or problem.error_code == "insufficient_permissions":
        # It continues with the account that another window has signed in.
        return sign_in_page(problem)
    return code_page(path, typed, problem=problem)
