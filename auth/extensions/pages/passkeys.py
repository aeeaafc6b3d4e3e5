"""Passkeys on the pages: signing in, and the passkeys of the account. Only these pages need JavaScript."""

import json
from typing import Any

from flask import Blueprint, Response, jsonify

from auth.extensions.pages.sign_in import sign_in_page
from auth.flows.passkeys import assertions
from auth.flows.passkeys.passkeys import begin_registration, finish_registration, require_enabled
from auth.flows.sign_in.reauthentication import add, require
from auth.html import browser_sessions
from auth.html.browser_sessions import signed_in
from auth.html.challenges import may_challenge, sent_credential
from auth.html.destinations import destination, form_page
from auth.html.page import page, redirect_to_own
from auth.html.problems import form
from auth.html.redirects import redirect_onward, redirect_with_cookie
from auth.web import Level, audited, guard
from auth.web.asked import current_asked
from auth.web.context import latchkey
from auth.web.errors import ApiError
from sql import queries

blueprint = Blueprint("passkeys", __name__)


@blueprint.get("/.well-known/passkey-endpoints")
def show_endpoints() -> Response:
    """Tell password managers where users add and remove passkeys (W3C, A Well-Known URL for Relying Party
    Passkey Endpoints).
    """
    if not latchkey.settings.offers_passkeys:
        raise ApiError("not_found")
    account = f"{latchkey.settings.base_url}/account"
    return jsonify(enroll=f"{account}/passkeys/new", manage=account)


@blueprint.get("/sign-in/passkey")
def show_passkey() -> Response:
    """Ask for a passkey if the sign-in page could not get a challenge, or has no script."""
    asked = current_asked()
    require_enabled(asked)
    if not may_challenge():
        return Response()
    return form_page("passkey.html", "sign-in/passkey", challenge=assertions.begin_sign_in(asked))


@blueprint.post("/sign-in/passkey")
@form("begin_passkey_sign_in", shown=sign_in_page)
def begin_with_passkey() -> Response:
    require_enabled(current_asked())
    return redirect_to_own(destination().path("sign-in/passkey"))


@blueprint.post("/sign-in/passkey/verify")
@form("sign_in_with_passkey", shown=sign_in_page)
@audited("sign_in_refused", sign_in="passkey")
def submit_passkey() -> Response:
    asked = current_asked()
    require_enabled(asked)
    session = assertions.sign_in(asked, sent_credential(), hook=None)
    return redirect_with_cookie(destination().own_url("sign-in"), session, way="passkey")


def effects_of_factor() -> dict[str, Any]:
    """Return whether a factor would be the caller's first, which ends other access, and whether API keys
    end."""
    caller = {"user_id": guard.caller_id()}
    is_first = queries.count_verified_factors(latchkey.db, **caller).total == 0
    return {"is_first": is_first, "has_keys": queries.list_api_keys(latchkey.db, **caller).api_keys != "[]"}


@blueprint.get("/account/passkeys/new")
@signed_in(Level.ENROL)
def show_new_passkey() -> Response:
    """Have the browser create a passkey."""
    asked = current_asked()
    require_enabled(asked)
    if not may_challenge():
        return Response()
    require(asked, add("passkey"))
    return page(
        "account_passkey.html",
        script=True,
        here=None,
        challenge=begin_registration(asked, {}),
        to=destination(),
        **effects_of_factor(),
    )


@blueprint.post("/account/passkeys")
@form("add_passkey", level=Level.ENROL)
@audited("change_refused")
def submit_new_passkey() -> Response:
    asked = current_asked()
    require_enabled(asked)
    credential = sent_credential()
    _, cookie = finish_registration(asked, asked.live_caller(), credential)
    browser_sessions.keep(cookie, "aal2")
    to = destination()
    return redirect_onward(to) if to.next else redirect_to_own("account#security", "passkey_added")


def own_passkeys() -> list[dict[str, Any]]:
    return json.loads(queries.list_passkeys(latchkey.db, user_id=guard.caller_id()).passkeys)
