"""The name, the email and the phone of the user."""

import json
from typing import Any

from flask import Blueprint, Response, jsonify, request

from auth.core.net.redirects import with_query
from auth.core.text import names
from auth.extensions.pages.waiting import address_of_page, problem_of_code
from auth.flows import organizations
from auth.flows.account.changes import change_user
from auth.flows.links.finding import by_code
from auth.flows.links.spending import ToBrowser, spend
from auth.flows.messages import outgoing
from auth.flows.sign_in import waiting
from auth.flows.sign_in.reauthentication import add, require
from auth.html import form_schemas
from auth.html.browser_sessions import signed_in
from auth.html.page import address, next_code, page, redirect_to_own
from auth.html.problems import Problem, form, problem_of_redirect
from auth.rules.users import AddressKind
from auth.web import Level, audited, callers, cookies
from auth.web.asked import current_asked
from auth.web.context import latchkey
from auth.web.errors import ApiError
from auth.web.input import read_form
from sql import queries

blueprint = Blueprint("profile", __name__)

_SCHEMAS = {"email": form_schemas.EmailForm, "phone": form_schemas.PhoneForm}


def own_user() -> dict[str, Any]:
    asked = current_asked()
    row = asked.admit_reader(queries.select_user(asked.db, **asked.caller_ids))
    return json.loads(organizations.user_object_for(row, callers.standing_of(row, asked.caller)))


@blueprint.get("/account/name")
@signed_in(Level.AAL2)
def show_name(problem: Problem | None = None) -> Response:
    name = names.of_user(own_user()["user_metadata"]) or ""
    return page("account_name.html", script=True, here="/account/name", problem=problem, name=name)


@blueprint.post("/account/name")
@form("change_user", shown=show_name, level=Level.AAL2)
def submit_name() -> Response:
    name = read_form(form_schemas.OptionalNameForm)["name"]
    members = dict.fromkeys(("name", "full_name"), name) if name else dict.fromkeys(names.MEMBERS)
    change_user(current_asked(), {"data": members})
    return redirect_to_own("account", "name")


@blueprint.get("/account/email", defaults={"kind": "email"})
@blueprint.get("/account/phone", defaults={"kind": "phone"})
@signed_in(Level.PROOF)
def show_address(kind: AddressKind, problem: Problem | None = None) -> Response:
    if problem and "typed" in request.form:
        # A form of the page that asks for the code has requested another one.
        return _code_page(kind, problem)
    asked = current_asked()
    require(asked, add(kind))
    return page(
        "account_address.html",
        script=True,
        here=f"/account/{kind}",
        problem=problem or problem_of_redirect(),
        kind=kind,
        present=getattr(asked.live_caller(), kind),
    )


@blueprint.post("/account/email", defaults={"kind": "email"})
@blueprint.post("/account/phone", defaults={"kind": "phone"})
@form("change_user", "change_address", shown=show_address, level=Level.PROOF)
@audited("change_refused")
def submit_address(kind: AddressKind) -> Response:
    asked, row = current_asked(), address_of_page()
    new_address = row.address if row else read_form(_SCHEMAS[kind])[kind]
    back, browser = f"{latchkey.settings.base_url}/account", cookies.bind_to_browser()
    old_address = getattr(asked.live_caller(), kind)
    user = change_user(asked, {kind: new_address}, {"redirect_to": back, "code_challenge": None, **browser})
    if not row and new_address == old_address and json.loads(user.user_object)[f"new_{kind}"] is None:
        return redirect_to_own("account", f"{kind}_stays")
    query = {"typed": waiting.keep_address(asked, new_address, **browser, has_asked=True)}
    return redirect_to_own(with_query(f"account/{kind}/code", query))


@blueprint.get("/account/email/code", defaults={"kind": "email"})
@blueprint.get("/account/phone/code", defaults={"kind": "phone"})
@signed_in(Level.AAL2)
def show_address_code(kind: str) -> Response:
    return _code_page(kind)


@blueprint.post("/account/email/waiting/state")
@form("poll_address", level=Level.AAL2)
def show_email_waiting() -> Response:
    row = address_of_page()
    return jsonify(is_used=row is not None and _is_callers(row.address))


def _code_page(kind: str, problem: Problem | None = None) -> Response:
    """Ask for the code that was sent to a new address, or continue after a link has confirmed it."""
    row = address_of_page()
    if row is None:
        return redirect_to_own(f"account/{kind}", error_code="insufficient_permissions")
    if not problem and _is_callers(row.address):
        return redirect_to_own("account", kind)
    countdown = next_code(outgoing.seconds_to_wait(current_asked(), row.address))
    return page(
        "account_code.html",
        script=True,
        here=f"/account/{kind}/code?typed={row.id}",
        problem=problem or problem_of_code(countdown["again_wait"]),
        kind=kind,
        typed=row.id,
        recipient=address(row.address),
        **countdown,
    )


@blueprint.post("/account/email/verify", defaults={"kind": "email"})
@blueprint.post("/account/phone/verify", defaults={"kind": "phone"})
@signed_in(Level.AAL2)
@form("verify", shown=_code_page)
@audited("verification_refused")
def submit_address_code(kind: str) -> Response:
    asked, row = current_asked(), address_of_page()
    if row is None or _is_callers(row.address):
        return _code_page(kind)
    code = by_code(asked, row.address, read_form(form_schemas.CodeForm)["code"], asked.browser_hash)
    try:
        # The code opens no session: the current session stays.
        spend(asked, f"{kind}_change", code, ToBrowser())
    except ApiError as error:
        # The link may have confirmed the email meanwhile.
        if error.error_code != "otp_expired" or not _is_callers(row.address):
            raise
    return redirect_to_own("account", kind)


def _is_callers(address: str) -> bool:
    """Whether an address is the caller's by now."""
    person = current_asked().live_caller()
    return address in (person.email, person.phone)
