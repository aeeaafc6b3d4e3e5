"""The name, the email and the phone of the user."""

import json
from typing import Any

from flask import Blueprint, Response, jsonify, request

from auth.domain.account.changes import change_user
from auth.domain.links.spending import by_code, spend
from auth.domain.messages import outgoing
from auth.domain.sessions.browser_sessions import signed_in
from auth.domain.sign_in import waiting
from auth.domain.sign_in.reauthentication import add, require
from auth.pages.sign_in import not_yet
from auth.web import Level, form_schemas, guard
from auth.web.context import latchkey
from auth.web.errors import ApiError
from auth.web.html.page import next_code, page, to_own
from auth.web.html.problems import Problem, form
from auth.web.input import read_form
from auth.web.limits import limited
from sql import queries

blueprint = Blueprint("profile", __name__)

_SCHEMAS = {"email": form_schemas.EmailForm, "phone": form_schemas.PhoneForm}
_CODE_SCHEMAS = {"email": form_schemas.EmailCodeForm, "phone": form_schemas.PhoneCodeForm}
# The arguments of the views for both kinds of addresses.
_EMAIL, _PHONE = {"kind": "email"}, {"kind": "phone"}


def own_user() -> dict[str, Any]:
    return json.loads(guard.admit(queries.select_user(latchkey.db, **guard.caller())).user_object)


def _name_form(problem: Problem | None = None) -> Response:
    name = own_user()["user_metadata"].get("name")
    known = name if isinstance(name, str) else ""
    return page("account_name.html", script=True, here="/account/name", problem=problem, name=known)


def _address_form(kind: str, problem: Problem | None = None) -> Response:
    if "again" in request.form and request.form.get(kind):
        return _code_form(kind, problem)
    known, here = getattr(guard.live_caller(), kind), f"/account/{kind}"
    return page("account_address.html", script=True, here=here, problem=problem, kind=kind, known=known)


def _code_form(
    kind: str, problem: Problem | None = None, typed: str | None = None, wait: float | None = None
) -> Response:
    typed, here = typed or request.form.get(kind, ""), f"/account/{kind}"
    if not typed:
        return _address_form(kind, problem)
    names, again = {"kind": kind, "typed": typed}, next_code(wait, problem)
    return page("account_code.html", script=True, here=here, problem=problem, names=names, **again)


@blueprint.get("/account/name")
@signed_in(Level.AAL2)
def show_name() -> Response:
    return _name_form()


@blueprint.post("/account/name")
@form("change_user", _name_form, level=Level.AAL2)
def submit_name() -> Response:
    change_user({"data": {"name": read_form(form_schemas.NameForm())["name"] or None}})
    return to_own("account?done=name")


@blueprint.get("/account/email", defaults=_EMAIL)
@blueprint.get("/account/phone", defaults=_PHONE)
@signed_in(Level.PROOF)
def show_address(kind: str) -> Response:
    require(add(kind))
    return _address_form(kind)


@blueprint.post("/account/email", defaults=_EMAIL)
@blueprint.post("/account/phone", defaults=_PHONE)
@form("change_user", _address_form, level=Level.PROOF, refusal="change_refused")
@limited("change_address", key=guard.caller_on_network)
def submit_address(kind: str) -> Response:
    """Send a code to the new address, and ask for it."""
    sent = read_form(_SCHEMAS[kind]())
    back = {"redirect_to": f"{latchkey.settings.base_url}/account", "code_challenge": None}
    change_user(sent, {**back, **waiting.bound()})
    return _code_form(kind, typed=sent[kind], wait=outgoing.seconds_to_wait(sent[kind]))


@blueprint.post("/account/email/verify", defaults=_EMAIL)
@blueprint.post("/account/phone/verify", defaults=_PHONE)
@signed_in(Level.AAL2)
@form("verify", _code_form, refusal="verification_refused")
def submit_address_code(kind: str) -> Response:
    sent = read_form(_CODE_SCHEMAS[kind]())
    try:
        # As if by a link, which opens no session: this one stays.
        spend(f"{kind}_change", by_code(sent[kind], sent["code"], **waiting.browser()), redirects=True)
    except ApiError as error:
        # The link may have confirmed the email meanwhile.
        if error.error_code != "otp_expired" or not _has_email(sent.get("email")):
            raise
    return to_own(f"account?done={kind}")


@blueprint.post("/account/email/waiting/state")
@form("poll_address", level=Level.AAL2)
def show_email_waiting() -> Response:
    return jsonify(is_used=_has_email(read_form(form_schemas.EmailForm())["email"]))


@blueprint.post("/account/email/waiting")
@form("wait_for_address", lambda problem: _code_form("email", problem), level=Level.AAL2)
def submit_email_waiting() -> Response:
    """Go on if the link to the new address is used."""
    has_email = _has_email(read_form(form_schemas.EmailForm())["email"])
    return to_own("account?done=email") if has_email else _code_form("email", not_yet())


def _has_email(email: str | None) -> bool:
    return email is not None and guard.live_caller().email == email
