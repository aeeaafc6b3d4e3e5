"""GET and POST /verify: where links lead, and where codes are typed in."""

import re
from collections.abc import Mapping
from datetime import datetime
from typing import Any

from flask import Blueprint, Response, request

from auth.context import latchkey
from auth.delivery import reduce
from auth.flows.token_response import redirect_with_code, redirect_with_error, redirect_with_tokens, see_other, token_response
from auth.flows.verification import Proof, spend
from auth.net.redirects import origin, with_fragment
from auth.tokens import one_time
from auth.web import schemas
from auth.web.errors import ApiError
from auth.web.limits import limited
from auth.web.pages import page
from auth.web.wire import FORM, accepts_forms, read_body, read_query

blueprint = Blueprint("verify", __name__)

# What fetches a link to show a preview of it, and says so; the rest of them send what browsers send.
_PREVIEW_BOTS = re.compile(
    r"bot\b|bot/|crawl|spider|preview|slurp|facebookexternalhit|whatsapp|telegram|discord|slack|linkedin|skype|teams|embed|vkshare|safelinks"
    r"|barracuda|mimecast|proofpoint|urlscan|virustotal|google-read-aloud|bingpreview|yahoo|pinterest|redditbot|iframely|mastodon|snapchat"
    r"|viber|kakaotalk|ms-?office|microsoft office|outlook",
    re.IGNORECASE,
)
_PREFETCH_HEADERS = {"sec-purpose", "purpose", "x-purpose", "x-moz"}
_DONE = {
    "email_change": "The new email address is confirmed",
    "email_restore": "The email address is restored; sign in again with a new password",
}


@blueprint.get("/verify")
@limited("verify", unless=lambda: request.method == "HEAD")
def verify_link() -> Response:
    """Spend a link for a program; show a browser the page whose button does, so that scanners and previews spend nothing."""
    query = read_query(schemas.VerifyQuery())
    token_hash = one_time.hash_token(query["token"])
    if request.method != "HEAD" and latchkey.settings.verify_on_get == "programs" and _is_program():
        return _spend_and_redirect(query)
    link = None
    if token_hash and query["type"] in one_time.PURPOSES:
        link = latchkey.db.one("select_link", token_hash=token_hash, purposes=one_time.PURPOSES[query["type"]])
    return _link_page(query, link) if link else page("link_dead.html", status=403, type=query["type"])


@blueprint.post("/verify")
@accepts_forms
@limited("verify")
def verify() -> Response:
    """Spend a link or a code: for the page's form with a redirect, for a program with the token response."""
    if request.mimetype == FORM:
        # Another site must not sign its visitors in to a user of its choice.
        if request.headers.get("Sec-Fetch-Site", "same-origin") != "same-origin":
            raise ApiError("form.insufficient_permissions")
        form = read_body(schemas.VerifyForm())
        token_hash = one_time.hash_token(form["token"])
        if form.get("action") == "decline":
            declined = token_hash and latchkey.db.run("decline_signup", token_hash=token_hash)
            return page("signup_declined.html") if declined else page("link_dead.html", status=403, type=form["type"])
        return _spend_and_redirect(form)

    body = read_body(schemas.Verification())
    if body["type"] == "email_restore":
        raise ApiError("validation_failed", "type: email_restore is for the link's page alone")
    return token_response(spend(body["type"], _proof(body), redirects=False).session, "otp")


def _proof(body: Mapping[str, str]) -> Proof:
    if "token_hash" in body:
        return Proof.by_link(body["token_hash"])
    return Proof.by_code(body.get("email") or body["phone"], body["token"])


def _link_page(query: Mapping[str, str], link: Any) -> Response:
    """Show what a link would do, and a form that does it."""
    target = _target(query, link.redirect_to)
    browser, system = reduce.browser_and_system(link.signup_user_agent)
    return page(
        "link.html",
        # The form sends the target back: whatever comes of it, the browser is then led where it may be.
        form_target=origin(target),
        target=target,
        query=query,
        link=link,
        moment=datetime.fromisoformat(link.signed_up_at),
        browser=browser,
        system=system,
    )


def _is_program() -> bool:
    """Whether a GET comes from a program that knows what it does: no browser, no scanner, no preview."""
    headers = request.headers
    if "text/html" in headers.get("Accept", "").lower() or any(name.lower().startswith("sec-fetch-") for name in headers.keys()):  # noqa: SIM118
        return False
    if not _PREFETCH_HEADERS.isdisjoint(name.lower() for name in headers.keys()):  # noqa: SIM118
        return False
    return not _PREVIEW_BOTS.search(headers.get("User-Agent", ""))


def _spend_and_redirect(query: Mapping[str, str]) -> Response:
    link_type = query["type"]
    try:
        outcome = spend(link_type, Proof.by_link(query["token"]), redirects=True)
    except ApiError as error:
        return redirect_with_error(_target(query, None), "access_denied", error)
    target = _target(query, outcome.redirect_to)
    if link_type in _DONE:
        return see_other(with_fragment(target, {"message": _DONE[link_type], "type": link_type}))
    if outcome.authorization_code:
        return redirect_with_code(target, outcome.authorization_code)
    return redirect_with_tokens(target, outcome.session, "otp", link_type)


def _target(query: Mapping[str, str], asked_for: str | None) -> str:
    """Return where the browser goes: where the link says or, if that is not allowed, the site; else where it was asked for."""
    return latchkey.redirects.checked(query.get("redirect_to") or asked_for)
