"""Signing in and up, and the codes of both."""

from collections.abc import Collection, Mapping
from typing import Any, cast
from urllib.parse import urlencode

from flask import Blueprint, Response, request

from auth.core.addresses import is_email
from auth.core.net.redirects import with_query
from auth.domain.account.sign_up import sign_up as register
from auth.domain.links.message_requests import request_message
from auth.domain.links.spending import by_code, spend
from auth.domain.messages import outgoing
from auth.domain.sessions import browser_sessions
from auth.domain.sessions.token_response import Session, redirect
from auth.domain.sign_in import waiting
from auth.domain.sign_in.arrivals import (
    LAST_USED,
    Destination,
    is_expected,
    redirect_after_sign_in,
    redirect_onward,
    redirect_with_cookie,
)
from auth.domain.sign_in.passwords import sign_in_with_password
from auth.web import Level, cookies, form_schemas
from auth.web.context import latchkey
from auth.web.errors import ApiError
from auth.web.html.destinations import destination, form_page
from auth.web.html.page import identifier, next_code, provider, redirect_to_own, text
from auth.web.html.problems import Problem, form, form_at, told
from auth.web.input import read_form

blueprint = Blueprint("sign_in", __name__)

# The purpose of the links that each page asks for.
LINKS = {"sign-in": "magiclink", "sign-up": "signup", "forgot-password": "recovery"}


@form_at(
    blueprint,
    "/sign-in",
    "sign_in_with_password",
    is_queued=True,
    limit_text="sign_in_rate_limit",
    refusal="sign_in_refused",
    sign_in="password",
)
def sign_in(problem: Problem | None = None) -> Response:
    """Ask for an address and a password, or whether to continue with the account that is signed in."""
    if problem and problem.error_code in ("email_not_confirmed", "phone_not_confirmed"):
        # The password was right.
        return code_page("sign-up", _address_of(read_form(form_schemas.AddressForm())), problem=problem)
    if problem:
        return sign_in_page(problem)
    if request.method == "POST":
        session = sign_in_with_password(read_form(form_schemas.SignInForm()), for_client=False)
        return redirect_with_cookie(session.row, destination(), way="password")
    to, known = destination(), browser_sessions.resume()
    if known and (not to or (request.method == "GET" and is_expected(to))):
        return redirect_after_sign_in(to)
    return form_page("continue.html", "sign-in", problem=told(), known=known) if known else sign_in_page()


@blueprint.post("/sign-in/code")
@form("request_sign_in", limit_text="code_rate_limit")
def request_sign_in_code(problem: Problem | None = None) -> Response:
    """Send a code, if the address has a user, and ask for it."""
    if problem:
        return _request_again("sign-in", problem)
    return send_code("sign-in", destination().own_url("sign-in"), "magiclink", create_user=False)


@blueprint.post("/sign-in/verify")
@form("verify", refusal="verification_refused", sign_in="link")
def submit_sign_in_code(problem: Problem | None = None) -> Response:
    return code_again("sign-in", problem) if problem else submit_code("sign-in", "email")


@blueprint.post("/sign-in/continue")
@form("continue_sign_in", level=Level.AAL2)
def continue_signed_in() -> Response:
    """Hand the application a session for the user who is signed in."""
    return redirect_onward(destination())


@form_at(blueprint, "/sign-up", "sign_up", is_queued=True, refusal="sign_up_refused")
def sign_up(problem: Problem | None = None) -> Response:
    """Register a user and ask for the code that is sent; a taken address gets the same page."""
    if problem:
        return _request_again("sign-up", problem)
    if request.method == "POST":
        sent, to = read_form(form_schemas.SignInForm()), destination().or_site()
        address = _address_of(sent)
        body = {**sent, "data": {}, "redirect_to": to.own_url("sign-in"), **waiting.bound()}
        if latchkey.settings.autoconfirm:
            session = cast(Session, register(body))
            return redirect_with_cookie(session.row, to, way="password")
        wait = outgoing.seconds_to_wait(address)
        register(body)
        return _sent_page("sign-up", address, wait)
    if browser_sessions.resume() or identifier() is None:
        return redirect_to_own(destination().path("sign-in"))
    return sign_up_page()


@blueprint.post("/sign-up/code")
@form("request_confirmation")
def request_sign_up_code(problem: Problem | None = None) -> Response:
    """Send the confirmation again."""
    if problem:
        return code_again("sign-up", problem)
    return send_code("sign-up", destination().or_site().own_url("sign-in"), "signup", "sms_signup")


@blueprint.post("/sign-up/verify")
@form("verify", refusal="verification_refused")
def submit_sign_up_code(problem: Problem | None = None) -> Response:
    return code_again("sign-up", problem) if problem else submit_code("sign-up", "signup")


@form_at(blueprint, "/forgot-password", "request_recovery")
def forgot_password(problem: Problem | None = None) -> Response:
    """Send a code, by email with a link, if the address has a user, and ask for the code."""
    if problem:
        return _request_again("forgot-password", problem)
    if request.method == "POST":
        back = destination().or_site().own_url("new-password")
        return send_code("forgot-password", back, "recovery")
    return forgot_page()


@blueprint.post("/forgot-password/verify")
@form("verify", refusal="verification_refused")
def submit_recovery_code(problem: Problem | None = None) -> Response:
    return code_again("forgot-password", problem) if problem else submit_code("forgot-password", "recovery")


@blueprint.post("/sign-in/address")
@form("carry_address")
def show_with_address() -> Response:
    """Show the form of another page with the address that was typed, which no URL may contain."""
    return _PAGES[read_form(form_schemas.PageForm())["page"]]()


def sign_in_page(problem: Problem | None = None) -> Response:
    if problem and problem.error_code == "insufficient_permissions" and (known := browser_sessions.resume()):
        # Another window has signed in since. Signing in again would end the session of its application.
        return form_page("continue.html", "sign-in", problem=problem, known=known)
    return _page_with_providers("sign_in.html", "sign-in", problem or told())


def sign_up_page(problem: Problem | None = None) -> Response:
    return _page_with_providers("sign_up.html", "sign-up", problem)


def forgot_page(problem: Problem | None = None) -> Response:
    return form_page("forgot_password.html", "forgot-password", problem=problem)


_PAGES = {"sign-in": sign_in_page, "sign-up": sign_up_page, "forgot-password": forgot_page}


def _page_with_providers(template: str, path: str, problem: Problem | Mapping[str, Any] | None) -> Response:
    return form_page(
        template,
        path,
        problem=problem,
        providers=provider_links(destination().own_url("sign-in"), among=latchkey.providers),
        has_passkeys=latchkey.settings.passkeys_enabled,
        last_used=cookies.sent(LAST_USED),
    )


def provider_links(back: str, among: Collection[str], **query: str) -> list[dict[str, str | None]]:
    """Return the links of the providers among these, which return to `back` after the sign-in."""
    return [
        provider(name) | {"query": urlencode({"provider": name, "redirect_to": back, **query})}
        for name in latchkey.providers
        if name in among
    ]


def code_page(
    path: str, typed_address: str, *, problem: Problem | None = None, has_asked: bool = False
) -> Response:
    """Ask for the code in an email or SMS, which `path`/verify takes.

    The page waits for the emailed link if it, or the page before, requested it: `has_asked`. Only those who
    typed the address see the page, so it is shown in full.
    """
    wait = outgoing.seconds_to_wait(typed_address) if has_asked else None
    if problem and _is_too_early(problem):
        has_asked, wait = True, float(problem.headers["Retry-After"])
    has_asked = has_asked or "has_asked" in request.form
    if problem and problem.error_code == "user_banned":
        # The code is used, here: the page would take the link for one that another browser has used.
        has_asked = False
    channel = "" if is_email(typed_address) else "_phone"
    names = {"purpose": path.replace("-", "_") + channel, "channel": channel, "typed_address": typed_address}
    names |= next_code(wait, problem)
    again = path if path == "forgot-password" else f"{path}/code"
    return form_page("code.html", path, path=path, again=again, problem=problem, has_asked=has_asked, **names)


def code_again(path: str, problem: Problem) -> Response:
    """Ask for the code again, or, without an address, show the first page of `path`."""
    typed = request.form.get("email", "")
    return code_page(path, typed, problem=problem) if typed else _PAGES[path](problem)


def _request_again(path: str, problem: Problem) -> Response:
    """Show a refused request for a code: beside the code that was sent before, if any, which still works."""
    was_sent = "again" in request.form or _is_too_early(problem)
    return code_again(path, problem) if was_sent else _PAGES[path](problem)


def _is_too_early(problem: Problem) -> bool:
    return problem.error_code.endswith("_send_rate_limit")


def _address_of(sent: Mapping[str, Any]) -> str:
    return sent.get("email") or sent["phone"]


def send_code(path: str, back: str, by_mail: str, by_sms: str = "sms", **members: Any) -> Response:
    """Send a message of these kinds to the address of the form, if it has a user, and ask for its code."""
    sent = read_form(form_schemas.AddressForm())
    address, body = _address_of(sent), {**sent, **members, "redirect_to": back, **waiting.bound()}
    wait = outgoing.seconds_to_wait(address)
    request_message(by_mail if "email" in sent else by_sms, body)
    return _sent_page(path, address, wait)


def _sent_page(path: str, address: str, wait: float) -> Response:
    """Ask for the code that was sent. Raises `ApiError` if it was too early to send one."""
    if wait:
        raise outgoing.too_early(address, wait)
    return code_page(path, address, has_asked=True)


def submit_code(path: str, link_type: str) -> Response:
    """Sign the browser in with the code of a form. Raises `ApiError`."""
    sent = read_form(form_schemas.CodeForm())
    # First, because the code of a used link would count as a wrong one.
    if "email" in sent and (response := redirect_if_used(path, sent["email"])):
        return response
    proof = by_code(_address_of(sent), sent["code"], **waiting.browser())
    outcome = spend(link_type if "email" in sent else "sms", proof, redirects=False)
    way = "code" if path == "sign-in" else "password"
    to, page_after = _onward("forgot-password" if "password_removed" in outcome.members else path)
    return redirect_with_cookie(outcome.session.row, to, page_after, way=way)


def redirect_if_used(path: str, email: str) -> Response | None:
    """Continue if the link was used and this browser gains nothing by it; otherwise return None.

    Raises `ApiError` if the link was used in another browser, which alone is signed in.
    """
    used = waiting.used_link(email, LINKS[path])
    if used is None:
        return None
    known, (to, page_after) = browser_sessions.resume(), _onward(path)
    if known and known.user_id == used.user_id:
        return redirect_to_own(to.path(page_after))
    if path != "sign-up":
        raise ApiError("elsewhere.otp_expired")
    if not known and (session := waiting.continue_sign_up(email)):
        return redirect_with_cookie(session, to)
    used = waiting.used_link(email, LINKS[path])
    if known or not used or not used.has_gone_on:
        raise ApiError("sign_up_elsewhere.otp_expired")
    # Perhaps in another window of this browser, whose cookie comes with the next request.
    return redirect(with_query(to.own_url("sign-in"), {"error_code": "used_elsewhere_sign_up"}))


def _onward(path: str) -> tuple[Destination, str]:
    """Return the destination after a page that asks for a code, and the page that leads there."""
    if path == "sign-in":
        return destination(), path
    return destination().or_site(), "new-password" if path == "forgot-password" else "sign-in"


def not_yet() -> Problem:
    """Return what to tell a user whose link has not been opened."""
    return Problem(text("code", "not_yet"), None, 200, {}, "otp_expired", "otp_expired")
