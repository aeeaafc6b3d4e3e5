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
from auth.web.html.page import next_code, page, redirect_to_own
from auth.web.html.problems import Problem, form, form_at
from auth.web.input import read_form
from sql import queries

blueprint = Blueprint("profile", __name__)

_SCHEMAS = {"email": form_schemas.EmailForm, "phone": form_schemas.PhoneForm}
_CODE_SCHEMAS = {"email": form_schemas.EmailCodeForm, "phone": form_schemas.PhoneCodeForm}


def own_user() -> dict[str, Any]:
    return json.loads(guard.admit(queries.select_user(latchkey.db, **guard.caller())).user_object)


@form_at(blueprint, "/account/name", "change_user", level=Level.AAL2)
def name(problem: Problem | None = None) -> Response:
    if request.method == "POST" and not problem:
        change_user({"data": {"name": read_form(form_schemas.NameForm())["name"] or None}})
        return redirect_to_own("account?done=name")
    known = own_user()["user_metadata"].get("name")
    shown = known if isinstance(known, str) else ""
    return page("account_name.html", script=True, here="/account/name", problem=problem, name=shown)


@form_at(
    blueprint,
    "/account/{kind}",
    "change_user",
    "change_address",
    level=Level.PROOF,
    refusal="change_refused",
    kinds=("email", "phone"),
)
def address(kind: str, problem: Problem | None = None) -> Response:
    """Ask for a new address, send a code to it, and ask for that."""
    if problem:
        return _code_again(kind, problem) if "again" in request.form else _address_page(kind, problem)
    if request.method == "POST":
        sent = read_form(_SCHEMAS[kind]())
        back = {"redirect_to": f"{latchkey.settings.base_url}/account", "code_challenge": None}
        change_user(sent, {**back, **waiting.bound()})
        return _code_page(kind, sent[kind], wait=outgoing.seconds_to_wait(sent[kind]))
    require(add(kind))
    return _address_page(kind)


@blueprint.post("/account/email/verify", defaults={"kind": "email"})
@blueprint.post("/account/phone/verify", defaults={"kind": "phone"})
@signed_in(Level.AAL2)
@form("verify", refusal="verification_refused")
def submit_address_code(kind: str, problem: Problem | None = None) -> Response:
    if problem:
        return _code_again(kind, problem)
    sent = read_form(_CODE_SCHEMAS[kind]())
    try:
        # As if by a link, which opens no session: this one stays.
        spend(f"{kind}_change", by_code(sent[kind], sent["code"], **waiting.browser()), redirects=True)
    except ApiError as error:
        # The link may have confirmed the email meanwhile.
        if error.error_code != "otp_expired" or not _has_email(sent.get("email")):
            raise
    return redirect_to_own(f"account?done={kind}")


@blueprint.post("/account/email/waiting/state")
@form("poll_address", level=Level.AAL2)
def show_email_waiting() -> Response:
    return jsonify(is_used=_has_email(read_form(form_schemas.EmailForm())["email"]))


@blueprint.post("/account/email/waiting")
@form("wait_for_address", level=Level.AAL2)
def submit_email_waiting(problem: Problem | None = None) -> Response:
    """Go on if the link to the new address is used."""
    if not problem and _has_email(read_form(form_schemas.EmailForm())["email"]):
        return redirect_to_own("account?done=email")
    return _code_again("email", problem or not_yet())


def _address_page(kind: str, problem: Problem | None = None) -> Response:
    known, here = getattr(guard.live_caller(), kind), f"/account/{kind}"
    return page("account_address.html", script=True, here=here, problem=problem, kind=kind, known=known)


def _code_page(kind: str, typed: str, problem: Problem | None = None, wait: float | None = None) -> Response:
    names, again, here = {"kind": kind, "typed": typed}, next_code(wait, problem), f"/account/{kind}"
    return page("account_code.html", script=True, here=here, problem=problem, names=names, **again)


def _code_again(kind: str, problem: Problem) -> Response:
    """Ask for the code again, or for the address if none was typed."""
    typed = request.form.get(kind)
    return _code_page(kind, typed, problem) if typed else _address_page(kind, problem)


def _has_email(email: str | None) -> bool:
    return email is not None and guard.live_caller().email == email
