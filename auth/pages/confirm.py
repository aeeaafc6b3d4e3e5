"""Asks for a proof that the user is present. Sensitive changes need one from the last 15 minutes."""

from urllib.parse import urlencode

from flask import Blueprint, Response, request

from auth.flows.arrivals import own_page
from auth.flows.browser_sessions import signed_in
from auth.flows.message_requests import send_reauthentication_code
from auth.flows.reauthentication import code_address, has_proof, record_reauthentication
from auth.pages.page import address, masked, page, to_own
from auth.pages.problems import Problem, shows
from auth.web import form_schemas, guard
from auth.web.errors import ApiError
from auth.web.forms import own_form
from auth.web.input import read_form
from auth.web.limits import limited

blueprint = Blueprint("confirm", __name__)


def require_proof() -> None:
    """Raises an `ApiError` that leads to the page below if the session has no proof."""
    if not has_proof(guard.live_caller()):
        raise ApiError("reauthentication_needed")


def _form(problem: Problem | None = None, *, is_sent: bool = False) -> Response:
    known, next_page = guard.live_caller(), request.values.get("next", "")
    is_own = own_page(next_page) is not None
    asked = code_address(known)
    return page(
        "confirm.html",
        script=True,
        here=f"/account/confirm?{urlencode({'next': next_page})}" if is_own else "/account/confirm",
        problem=problem,
        next=next_page if is_own else "account",
        has_password=known.password_hash is not None,
        account=known.email or known.phone,
        asked=address(masked(asked)) if asked else None,
        is_sent=is_sent or "again" in request.form or (problem is not None and problem.field == "nonce"),
    )


@blueprint.get("/account/confirm")
@signed_in
def show_confirm() -> Response:
    """Ask for the password or a code."""
    return _form()


@blueprint.post("/account/confirm")
@signed_in
@shows(_form)
@own_form
@limited("user_changes", key=guard.caller_on_network)
def submit_confirm() -> Response:
    record_reauthentication(guard.live_caller(), read_form(form_schemas.ProofForm()))
    return to_own(own_page(request.form.get("next")) or "account")


@blueprint.post("/account/confirm/code")
@signed_in
@shows(_form)
@own_form
@limited("recover")
def request_proof_code() -> Response:
    """Send a code to the user's address."""
    send_reauthentication_code(guard.live_caller())
    return _form(is_sent=True)
