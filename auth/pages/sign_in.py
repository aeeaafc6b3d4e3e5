"""Signing in and up, and the codes of both."""

from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, cast
from urllib.parse import urlencode

from flask import Blueprint, Response, request

from auth.core.addresses import is_email
from auth.core.net.redirects import with_query
from auth.domain.account.sign_up import sign_up
from auth.domain.links.message_requests import request_message
from auth.domain.links.spending import by_code, spend
from auth.domain.messages import outgoing
from auth.domain.sessions import browser_sessions
from auth.domain.sessions.token_response import Session, see_other
from auth.domain.sign_in import waiting
from auth.domain.sign_in.arrivals import LAST_USED, Destination, arrive, go_on
from auth.domain.sign_in.passwords import sign_in_with_password
from auth.web import Level, cookies, form_schemas
from auth.web.context import latchkey
from auth.web.errors import ApiError
from auth.web.html.destinations import destination, form_page
from auth.web.html.page import identifier, next_code, provider, text, to_own
from auth.web.html.problems import Form, Problem, form, told
from auth.web.input import read_form

blueprint = Blueprint("sign_in", __name__)

# The purpose of the links that each page asks for.
LINKS = {"sign-in": "magiclink", "sign-up": "signup", "forgot-password": "recovery"}


def _address_of(sent: Mapping[str, Any]) -> str:
    return sent.get("email") or sent["phone"]


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


def _is_too_early(problem: Problem | None) -> bool:
    return problem is not None and problem.error_code.endswith("_send_rate_limit")


def code_form(path: str, first: Form, *, is_asked_again: bool = False) -> Form:
    """Return the form for the code that was sent, or the first one if none was.

    With `is_asked_again`, one was sent if the form asks for another, or too early for one: it still works.
    """

    def shown(problem: Problem | None = None) -> Response:
        typed = request.form.get("email", "")
        has_code = typed and (not is_asked_again or "again" in request.form or _is_too_early(problem))
        return code_page(path, typed, problem=problem) if has_code else first(problem)

    return shown


def send_code(path: str, back: str, by_mail: str, by_sms: str = "sms", **members: Any) -> Response:
    """Send a message of these kinds to the address of the form, if it has a user, and ask for its code."""
    sent = read_form(form_schemas.AddressForm())
    body = {**sent, **members, "redirect_to": back, **waiting.bound()}
    with _waited_for(_address_of(sent)):
        request_message(by_mail if "email" in sent else by_sms, body)
    return code_page(path, _address_of(sent), has_asked=True)


@contextmanager
def _waited_for(address: str) -> Iterator[None]:
    """Raises `ApiError` after a request for a message to this address that came too early to send one."""
    wait = outgoing.seconds_to_wait(address)
    yield
    if wait:
        raise outgoing.too_early(address, wait)


def submit_code(path: str, link_type: str) -> Response:
    """Sign the browser in with the code of a form. Raises `ApiError`."""
    sent = read_form(form_schemas.CodeForm())
    # First, because the code of a used link would count as a wrong one.
    if "email" in sent and (response := go_on_if_used(path, sent["email"])):
        return response
    proof = by_code(_address_of(sent), sent["code"], **waiting.browser())
    outcome = spend(link_type if "email" in sent else "sms", proof, redirects=False)
    way = "code" if path == "sign-in" else "password"
    return arrive(
        outcome.session.row,
        *_onward("forgot-password" if "password_removed" in outcome.members else path),
        way=way,
    )


def go_on_if_used(path: str, email: str) -> Response | None:
    """Continue if the link was used and this browser gains nothing by it; otherwise return None.

    Raises `ApiError` if the link was used in another browser, which alone is signed in.
    """
    used = waiting.used_link(email, LINKS[path])
    if used is None:
        return None
    known, (to, page_after) = browser_sessions.resume(), _onward(path)
    if known and known.user_id == used.user_id:
        return to_own(to.path(page_after))
    if path != "sign-up":
        raise ApiError("elsewhere.otp_expired")
    if not known and (session := waiting.continue_sign_up(email)):
        return arrive(session, to)
    used = waiting.used_link(email, LINKS[path])
    if known or not used or not used.has_gone_on:
        raise ApiError("sign_up_elsewhere.otp_expired")
    # Perhaps in another window of this browser, whose cookie comes with the next request.
    return see_other(with_query(to.own_url("sign-in"), {"error_code": "used_elsewhere_sign_up"}))


def _onward(path: str) -> tuple[Destination, str]:
    """Return the destination after a page that asks for a code, and the page that leads there."""
    to = destination()
    return (to.before_password(), "new-password") if path == "forgot-password" else (to, "sign-in")


def sign_in_form(problem: Problem | None = None) -> Response:
    if problem and problem.error_code in ("email_not_confirmed", "phone_not_confirmed"):
        # The password was right.
        typed = _address_of(read_form(form_schemas.AddressForm()))
        return code_page("sign-up", typed, problem=problem)
    if problem and problem.error_code == "insufficient_permissions" and (known := browser_sessions.resume()):
        # Another window has signed in since. Signing in again would end the session of its application.
        return form_page("continue.html", "sign-in", problem=problem, known=known)
    return _form_with_providers("sign_in.html", "sign-in", problem or told())


def _form_with_providers(template: str, path: str, problem: Problem | Mapping[str, Any] | None) -> Response:
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


def _sign_up_form(problem: Problem | None = None) -> Response:
    return _form_with_providers("sign_up.html", "sign-up", problem)


def forgot_form(problem: Problem | None = None) -> Response:
    return form_page("forgot_password.html", "forgot-password", problem=problem)


def not_yet() -> Problem:
    """Return what to tell a user whose link has not been opened."""
    return Problem(text("code", "not_yet"), None, 200, {}, "otp_expired", "otp_expired")


_code_form = code_form("sign-in", sign_in_form)
_request_form = code_form("sign-in", sign_in_form, is_asked_again=True)
_sign_up_request_form = code_form("sign-up", _sign_up_form, is_asked_again=True)
_sign_up_code_form = code_form("sign-up", _sign_up_form)
_FORMS = {"sign-in": sign_in_form, "sign-up": _sign_up_form, "forgot-password": forgot_form}


@blueprint.get("/sign-in")
def show_sign_in() -> Response:
    """Ask for an address and a password, or whether to continue with the account that is signed in."""
    to, known = destination(), browser_sessions.resume()
    if known and not to:
        return go_on(to)
    return form_page("continue.html", "sign-in", problem=told(), known=known) if known else sign_in_form()


@blueprint.post("/sign-in")
@form(
    "sign_in_with_password",
    sign_in_form,
    is_queued=True,
    limit_text="sign_in_rate_limit",
    refusal="sign_in_refused",
    sign_in="password",
)
def submit_sign_in() -> Response:
    session = sign_in_with_password(read_form(form_schemas.SignInForm()), for_client=False)
    return arrive(session.row, destination(), way="password")


@blueprint.post("/sign-in/code")
@form("request_sign_in", _request_form, limit_text="code_rate_limit")
def request_sign_in_code() -> Response:
    """Send a code, if the address has a user, and ask for it."""
    return send_code("sign-in", destination().own_url("sign-in"), "magiclink", create_user=False)


@blueprint.post("/sign-in/verify")
@form("verify", _code_form, refusal="verification_refused", sign_in="link")
def submit_sign_in_code() -> Response:
    return submit_code("sign-in", "email")


@blueprint.post("/sign-in/continue")
@form("continue_sign_in", level=Level.AAL2)
def continue_signed_in() -> Response:
    """Hand the application a session for the user who is signed in."""
    return go_on(destination())


@blueprint.get("/sign-up")
def show_sign_up() -> Response:
    if browser_sessions.resume() or identifier() is None:
        return to_own(destination().path("sign-in"))
    return _sign_up_form()


@blueprint.post("/sign-up")
@form("sign_up", _sign_up_request_form, is_queued=True, refusal="sign_up_refused")
def submit_sign_up() -> Response:
    """Register a user and ask for the code that is sent; a taken address gets the same page."""
    sent, to = read_form(form_schemas.SignInForm()), destination()
    body = {**sent, "data": {}, "redirect_to": to.own_url("sign-in"), **waiting.bound()}
    if latchkey.settings.autoconfirm:
        session = cast(Session, sign_up(body))
        return arrive(session.row, to, way="password")
    with _waited_for(_address_of(sent)):
        sign_up(body)
    return code_page("sign-up", _address_of(sent), has_asked=True)


@blueprint.post("/sign-up/code")
@form("request_confirmation", _sign_up_code_form)
def request_sign_up_code() -> Response:
    """Send the confirmation again."""
    return send_code("sign-up", destination().own_url("sign-in"), "signup", "sms_signup")


@blueprint.post("/sign-up/verify")
@form("verify", _sign_up_code_form, refusal="verification_refused")
def submit_sign_up_code() -> Response:
    return submit_code("sign-up", "signup")


@blueprint.post("/sign-in/address")
@form("carry_address")
def show_with_address() -> Response:
    """Show the form of another page with the address that was typed, which no URL may contain."""
    return _FORMS[read_form(form_schemas.PageForm())["page"]]()
