"""The name, the email and the phone of the user."""

import json
from typing import Any

from flask import Blueprint, Response, jsonify, request

from auth.core.net.redirects import with_query
from auth.core.text import names
from auth.extensions.pages.waiting import told_of_code, typed
from auth.flows import organizations
from auth.flows.account.changes import change_user
from auth.flows.links.finding import by_code
from auth.flows.links.spending import ToBrowser, spend
from auth.flows.messages import outgoing
from auth.flows.sign_in import waiting
from auth.flows.sign_in.reauthentication import add, require
from auth.html import form_schemas
from auth.html.browser_sessions import signed_in
from auth.html.page import address as shown_address
from auth.html.page import next_code, page, redirect_to_own
from auth.html.problems import Problem, form, told
from auth.rules.users import AddressKind
from auth.web import Level, audited, cookies
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
    return json.loads(organizations.user_object_for(row, asked.caller.aal, asked.caller.providers))


@blueprint.get("/account/name")
@signed_in(Level.AAL2)
def show_name(problem: Problem | None = None) -> Response:
    shown = names.of_user(own_user()["user_metadata"]) or ""
    return page("account_name.html", script=True, here="/account/name", problem=problem, name=shown)


@blueprint.post("/account/name")
@form("change_user", shown=show_name, level=Level.AAL2)
def submit_name() -> Response:
    new = read_form(form_schemas.OptionalNameForm)["name"]
    members = dict.fromkeys(("name", "full_name"), new) if new else dict.fromkeys(names.MEMBERS)
    change_user(current_asked(), {"data": members})
    return redirect_to_own("account", "name")


@blueprint.get("/account/email", defaults={"kind": "email"})
@blueprint.get("/account/phone", defaults={"kind": "phone"})
@signed_in(Level.PROOF)
def show_address(kind: AddressKind, problem: Problem | None = None) -> Response:
    if problem and "typed" in request.form:
        # The page of the code asked for another one.
        return _code_page(kind, problem)
    require(current_asked(), add(kind))
    known, here, said = getattr(current_asked().live_caller(), kind), f"/account/{kind}", problem or told()
    return page("account_address.html", script=True, here=here, problem=said, kind=kind, known=known)


@blueprint.post("/account/email", defaults={"kind": "email"})
@blueprint.post("/account/phone", defaults={"kind": "phone"})
@form("change_user", "change_address", shown=show_address, level=Level.PROOF)
@audited("change_refused")
def submit_address(kind: AddressKind) -> Response:
    asked = current_asked()
    kept = typed()
    new = kept.address if kept else read_form(_SCHEMAS[kind])[kind]
    back, browser = f"{latchkey.settings.base_url}/account", cookies.bound()
    known = getattr(current_asked().live_caller(), kind)
    changed = change_user(asked, {kind: new}, {"redirect_to": back, "code_challenge": None, **browser})
    if not kept and new == known and json.loads(changed.user_object)[f"new_{kind}"] is None:
        return redirect_to_own("account", f"{kind}_stays")
    query = {"typed": waiting.keep_address(asked, new, **browser, has_asked=True)}
    return redirect_to_own(with_query(f"account/{kind}/code", query))


@blueprint.get("/account/email/code", defaults={"kind": "email"})
@blueprint.get("/account/phone/code", defaults={"kind": "phone"})
@signed_in(Level.AAL2)
def show_address_code(kind: str) -> Response:
    return _code_page(kind)


@blueprint.post("/account/email/waiting/state")
@form("poll_address", level=Level.AAL2)
def show_email_waiting() -> Response:
    kept = typed()
    return jsonify(is_used=kept is not None and _has(kept.address))


def _code_page(kind: str, problem: Problem | None = None) -> Response:
    """Ask for the code that was sent to a new address, or continue after a link has confirmed it."""
    kept = typed()
    if kept is None:
        return redirect_to_own(f"account/{kind}", error_code="insufficient_permissions")
    if not problem and _has(kept.address):
        return redirect_to_own("account", kind)
    again = next_code(outgoing.seconds_to_wait(current_asked(), kept.address))
    shown = {"kind": kind, "typed": kept.id, "shown": shown_address(kept.address)} | again
    here, said = f"/account/{kind}/code?typed={kept.id}", problem or told_of_code(again["again_wait"])
    return page("account_code.html", script=True, here=here, problem=said, **shown)


@blueprint.post("/account/email/verify", defaults={"kind": "email"})
@blueprint.post("/account/phone/verify", defaults={"kind": "phone"})
@signed_in(Level.AAL2)
@form("verify", shown=_code_page)
@audited("verification_refused")
def submit_address_code(kind: str) -> Response:
    asked = current_asked()
    kept = typed()
    if kept is None or _has(kept.address):
        return _code_page(kind)
    code = by_code(asked, kept.address, read_form(form_schemas.CodeForm)["code"], asked.browser_hash)
    try:
        # Like a link that opens no session: the current session stays.
        spend(asked, f"{kind}_change", code, ToBrowser())
    except ApiError as error:
        # The link may have confirmed the email meanwhile.
        if error.error_code != "otp_expired" or not _has(kept.address):
            raise
    return redirect_to_own("account", kind)


def _has(address: str) -> bool:
    known = current_asked().live_caller()
    return address in (known.email, known.phone)
