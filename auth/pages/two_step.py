"""Two-step verification in the account: authenticator apps and recovery codes."""

from dataclasses import replace
from typing import Any

from flask import Blueprint, Response, request
from markupsafe import Markup

from auth.account import factors, recovery_codes
from auth.pages.page import page, to_own
from auth.pages.problems import Problem, shows
from auth.pages.second_step import verify_code
from auth.pages.sign_in import destination
from auth.sign_in import browser_sessions
from auth.sign_in.browser_sessions import signed_in
from auth.sign_in.reauthentication import add, require
from auth.web import Level, audited, form_schemas, g, guard
from auth.web.errors import ApiError
from auth.web.forms import own_form
from auth.web.input import known_id, read_form
from auth.web.limits import limited

blueprint = Blueprint("two_step", __name__)


def _page(template: str, **values: Any) -> Response:
    """Render a page that remembers the application whose sign-in waits for the required second factor."""
    return page(template, script=True, to=destination(), **values)


def _is_required() -> bool:
    """Whether the account opens only with a second factor."""
    try:
        guard.live_caller(Level.AAL2)
    except ApiError as error:
        return error.error_code == "insufficient_aal"
    return False


def _intro() -> Response:
    return _page("two_step.html", here="/account/two-step", is_required=_is_required())


def _code_form(problem: Problem | None = None) -> Response:
    factor_id = request.form.get("factor_id", "")
    return _page("two_step_code.html", here=None, problem=problem, factor_id=factor_id, totp=None)


@blueprint.get("/account/two-step")
@signed_in(Level.SESSION)
def show_two_step() -> Response:
    """Explain authenticator apps, and offer to set one up."""
    return _intro()


@blueprint.post("/account/two-step")
@signed_in(Level.ENROL)
@own_form
@limited("user_changes", key=guard.caller_on_network)
def begin_two_step() -> Response:
    """Show the secret of a new authenticator app, as a QR code and as text."""
    require(add("factor"))
    enrolled = factors.enrol(guard.live_caller(), {"factor_type": "totp", "friendly_name": ""})
    secret = enrolled["totp"]["secret"]
    totp = {
        # The SVG is ours, not a user's.
        "qr_code": Markup(enrolled["totp"]["qr_code"]),  # noqa: S704
        "secret": " ".join(secret[place : place + 4] for place in range(0, len(secret), 4)),
        "uri": enrolled["totp"]["uri"],
    }
    factor_id = enrolled["id"]
    return _page("two_step_code.html", here=None, problem=None, factor_id=factor_id, totp=totp)


@blueprint.post("/account/two-step/verify")
@signed_in(Level.SESSION)
@shows(_code_form)
@own_form
@limited("verify", key=guard.caller_on_network)
@audited("factor_refused")
def finish_two_step() -> Response:
    """Switch two-step verification on by the first code, and show recovery codes."""
    g.caller = replace(g.caller, aal=verify_code().aal)
    response = _new_codes()
    browser_sessions.renew(response)
    return response


@blueprint.post("/account/two-step/remove")
@signed_in(Level.SESSION)
@own_form
@limited("user_changes", key=guard.caller_on_network)
@audited("change_refused")
def remove_two_step() -> Response:
    factors.remove(known_id(read_form(form_schemas.IdForm())["id"], "mfa_factor_not_found"), {})
    return to_own("account?done=factor_removed#security")


@blueprint.post("/account/recovery-codes")
@signed_in(Level.SECOND_FACTOR)
@own_form
@limited("user_changes", key=guard.caller_on_network)
def new_recovery_codes() -> Response:
    """Replace the recovery codes, and show the new ones once."""
    require(add("recovery_codes"))
    return _new_codes()


def _new_codes() -> Response:
    codes, _moment = recovery_codes.create({})
    return _page("recovery_codes.html", here=None, codes=codes)
