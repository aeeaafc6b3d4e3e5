"""Passkeys on the pages: signing in, and the passkeys of the account. Only these pages need JavaScript."""

import json
from typing import Any

from flask import Blueprint, Response, jsonify, request

from auth.core import constants
from auth.core.factors import webauthn
from auth.extensions.pages.sign_in import sign_in_page
from auth.flows.facts import PersonFacts
from auth.flows.passkeys import assertions
from auth.flows.passkeys.passkeys import begin_registration, finish_registration, require_enabled
from auth.flows.sign_in.reauthentication import add, require
from auth.html import browser_sessions, forms
from auth.html.browser_sessions import signed_in
from auth.html.challenges import may_challenge, sent_credential
from auth.html.destinations import destination, form_page
from auth.html.page import page, redirect_to_own
from auth.html.problems import Problem, form
from auth.html.redirects import (
    OFFER,
    leads_to_offer,
    redirect_after_sign_in,
    redirect_onward,
    redirect_with_cookie,
)
from auth.web import Level, audited, cookies, guard
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


def _sign_in_again(problem: Problem) -> Response:
    if problem.key != "unknown.webauthn_verification_failed":
        return sign_in_page(problem)
    return sign_in_page(problem, unknown=sent_credential()["credential"]["id"])


@blueprint.post("/sign-in/passkey/verify")
@form("sign_in_with_passkey", shown=_sign_in_again)
@audited("sign_in_refused", sign_in="passkey")
def submit_passkey() -> Response:
    asked = current_asked()
    require_enabled(asked)
    session = assertions.sign_in(asked, sent_credential(), hook=None)
    return redirect_with_cookie(destination().own_url("sign-in"), session, way="passkey")


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
    )


@blueprint.post("/account/passkeys")
@form("add_passkey", level=Level.ENROL)
@audited("change_refused")
def submit_new_passkey() -> Response:
    asked = current_asked()
    require_enabled(asked)
    credential = sent_credential()
    _, cookie = finish_registration(asked, asked.live_caller(), credential, may_be_unasked=False)
    browser_sessions.keep(cookie, "aal2")
    to = destination()
    return redirect_onward(to) if to.next else redirect_to_own("account#security", "passkey_added")


@blueprint.get(f"/{OFFER}")
@signed_in(Level.ENROL)
def show_offer(problem: Problem | None = None) -> Response:
    """Offer a passkey between a sign-in and its destination. The browser may make one by itself, once."""
    asked = current_asked()
    require_enabled(asked)
    if request.method == "HEAD":
        return Response()
    if not leads_to_offer(destination()) or not may_challenge():
        # It may have been answered in another tab. A GET request must not continue: another site may have
        # started it.
        return redirect_to_own(destination().path("sign-in"))
    is_auto = latchkey.settings.passkey_offer == "auto" and problem is None
    return form_page(
        "passkey_offer.html",
        OFFER,
        problem=problem,
        challenge=begin_registration(asked, {}),
        upgrade=begin_registration(asked, {"mediation": "conditional"}) if is_auto else None,
    )


@blueprint.post(f"/{OFFER}")
@form("add_passkey", shown=show_offer, level=Level.ENROL)
@audited("change_refused")
def take_offer() -> Response:
    """Add the passkey, which the browser may have made unasked, and go on."""
    asked = current_asked()
    require_enabled(asked)
    _, cookie = finish_registration(asked, asked.live_caller(), sent_credential())
    if cookie:
        browser_sessions.keep(cookie, "aal2")
    return _remember_answer(redirect_after_sign_in(destination(), done="passkey_added"))


@blueprint.post(f"/{OFFER}/decline")
@form("continue_sign_in", level=Level.AAL2)
def decline_offer() -> Response:
    return _remember_answer(redirect_after_sign_in(destination()))


def _remember_answer(response: Response) -> Response:
    """Offer nothing more in this browser for a while, whoever signs in."""
    cookies.set_cookie(response, cookies.OFFERED, "1", max_age=constants.NEXT_PASSKEY_OFFER)
    return response


def signals(caller: PersonFacts) -> dict[str, dict[str, Any]]:
    """Return what the page tells the browser's passkey providers, by methods of `PublicKeyCredential`
    (WebAuthn Level 3, section 5.1.10).
    """
    site, name = latchkey.relying_party.id, assertions.name_of(caller)
    user = {"rpId": site, "userId": assertions.base64url(webauthn.user_handle(caller.id))}
    ids = assertions.accepted_ids(latchkey.db, caller.id, except_id=forms.signed_value("removed"))
    return {
        "signalAllAcceptedCredentials": {**user, "allAcceptedCredentialIds": ids},
        "signalCurrentUserDetails": {**user, "name": name, "displayName": name},
    }


def own_passkeys() -> list[dict[str, Any]]:
    return json.loads(queries.list_passkeys(latchkey.db, user_id=guard.caller_id()).passkeys)
