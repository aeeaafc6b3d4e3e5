import json
from typing import Any

from flask import Blueprint, Response, jsonify, request

from auth.account.changes import change_user
from auth.context import latchkey
from auth.links.spending import by_code, spend
from auth.pages.page import address, page, to_own
from auth.pages.problems import Problem, shows
from auth.pages.waiting import not_yet
from auth.sign_in.browser_sessions import signed_in
from auth.sign_in.reauthentication import add, require
from auth.text.masking import masked
from auth.web import Level, audited, form_schemas, guard
from auth.web.errors import ApiError
from auth.web.forms import own_form
from auth.web.input import read_form
from auth.web.limits import limited

blueprint = Blueprint("profile", __name__)


def own_user() -> dict[str, Any]:
    """Return the user object of the caller."""
    return json.loads(guard.admit(latchkey.db.one("select_user", **guard.caller())).user_object)


def _name_form(problem: Problem | None = None) -> Response:
    name = own_user()["user_metadata"].get("name")
    known = name if isinstance(name, str) else ""
    return page("account_name.html", script=True, here="/account/name", problem=problem, name=known)


def _email_form(problem: Problem | None = None) -> Response:
    return _request_form("email", problem)


def _phone_form(problem: Problem | None = None) -> Response:
    return _request_form("phone", problem)


def _address_form(kind: str, problem: Problem | None = None) -> Response:
    known = getattr(guard.live_caller(), kind)
    names = {"kind": kind, "known": known}
    return page("account_address.html", script=True, here=f"/account/{kind}", problem=problem, **names)


def _code_form(kind: str, problem: Problem | None = None, typed: str | None = None) -> Response:
    typed = typed or request.form.get(kind, "")
    if not typed:
        return _address_form(kind, problem)
    shown, here = address(masked(typed)), f"/account/{kind}"
    names = {"kind": kind, "typed": typed, "shown": shown}
    return page("account_code.html", script=True, here=here, problem=problem, names=names)


def _request_form(kind: str, problem: Problem | None) -> Response:
    return _code_form(kind, problem) if "again" in request.form else _address_form(kind, problem)


def _email_code_form(problem: Problem | None = None) -> Response:
    return _code_form("email", problem)


def _phone_code_form(problem: Problem | None = None) -> Response:
    return _code_form("phone", problem)


@blueprint.get("/account/name")
@signed_in(Level.AAL2)
def show_name() -> Response:
    return _name_form()


@blueprint.post("/account/name")
@signed_in(Level.AAL2)
@shows(_name_form)
@own_form
@limited("user_changes", key=guard.caller_on_network)
def submit_name() -> Response:
    change_user({"data": {"name": read_form(form_schemas.NameForm())["name"] or None}})
    return to_own("account?done=name")


@blueprint.get("/account/email")
@signed_in(Level.PROOF)
def show_email() -> Response:
    require(add("email"))
    return _email_form()


@blueprint.post("/account/email")
@signed_in(Level.PROOF)
@shows(_email_form)
@own_form
@limited("user_changes", key=guard.caller_on_network)
@limited("address_changes", key=guard.caller_on_network)
@audited("change_refused")
def submit_email() -> Response:
    """Send a code to the new address, and ask for it."""
    form = read_form(form_schemas.EmailForm())
    back = f"{latchkey.settings.base_url}/account"
    change_user(form, {"redirect_to": back, "code_challenge": None})
    return _code_form("email", typed=form["email"])


@blueprint.post("/account/email/verify")
@signed_in(Level.AAL2)
@shows(_email_code_form)
@own_form
@limited("verify")
@audited("verification_refused")
def submit_email_code() -> Response:
    form = read_form(form_schemas.EmailCodeForm())
    try:
        # As if by a link, which opens no session: this one stays.
        spend("email_change", by_code(form["email"], form["code"]), redirects=True)
    except ApiError as error:
        if error.error_code != "otp_expired" or not _has_email(form["email"]):
            raise
    return to_own("account?done=email")


@blueprint.post("/account/email/waiting/state")
@signed_in(Level.AAL2)
@own_form
@limited("waiting")
def show_email_waiting() -> Response:
    """Say whether the link to the new address is used."""
    return jsonify(is_used=_has_email(read_form(form_schemas.EmailForm())["email"]))


@blueprint.post("/account/email/waiting")
@signed_in(Level.AAL2)
@shows(_email_code_form)
@own_form
@limited("waiting")
def submit_email_waiting() -> Response:
    """Go on if the link to the new address is used."""
    has_email = _has_email(read_form(form_schemas.EmailForm())["email"])
    return to_own("account?done=email") if has_email else _email_code_form(not_yet())


def _has_email(email: str) -> bool:
    return guard.live_caller().email == email


@blueprint.post("/account/email/remove")
@signed_in(Level.SESSION)
@shows(_email_form)
@own_form
@limited("user_changes", key=guard.caller_on_network)
@audited("change_refused")
def remove_email() -> Response:
    change_user({"email": None})
    return to_own("account?done=email_removed")


@blueprint.get("/account/phone")
@signed_in(Level.PROOF)
def show_phone() -> Response:
    require(add("phone"))
    return _phone_form()


@blueprint.post("/account/phone")
@signed_in(Level.PROOF)
@shows(_phone_form)
@own_form
@limited("user_changes", key=guard.caller_on_network)
@limited("address_changes", key=guard.caller_on_network)
@audited("change_refused")
def submit_phone() -> Response:
    """Send a code to the new number, and ask for it."""
    form = read_form(form_schemas.PhoneForm())
    change_user(form)
    return _code_form("phone", typed=form["phone"])


@blueprint.post("/account/phone/verify")
@signed_in(Level.AAL2)
@shows(_phone_code_form)
@own_form
@limited("verify")
@audited("verification_refused")
def submit_phone_code() -> Response:
    form = read_form(form_schemas.PhoneCodeForm())
    spend("phone_change", by_code(form["phone"], form["code"]), redirects=True)
    return to_own("account?done=phone")


@blueprint.post("/account/phone/remove")
@signed_in(Level.SESSION)
@shows(_phone_form)
@own_form
@limited("user_changes", key=guard.caller_on_network)
@audited("change_refused")
def remove_phone() -> Response:
    change_user({"phone": None})
    return to_own("account?done=phone_removed")
