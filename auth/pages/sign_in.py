from collections.abc import Callable, Mapping
from typing import Any
from urllib.parse import urlencode

from flask import Blueprint, Response, request

from auth.addresses import is_email
from auth.context import latchkey
from auth.links.requests import request_message
from auth.links.spending import by_code, spend
from auth.net.redirects import origin, with_query
from auth.pages.page import address, page, provider, to_own
from auth.pages.problems import Problem, shows, told
from auth.sign_in import browser_sessions, waiting
from auth.sign_in.arrivals import Destination, arrive, go_on
from auth.sign_in.browser_sessions import signed_in
from auth.sign_in.passwords import queued, sign_in_with_password
from auth.sign_in.token_response import see_other
from auth.text.masking import masked
from auth.web import Level, audited, form_schemas, guard
from auth.web.errors import ApiError
from auth.web.forms import own_form
from auth.web.input import read_form, read_query
from auth.web.limits import limited

blueprint = Blueprint("sign_in", __name__)

# Shows a form, perhaps with what was wrong with it.
Form = Callable[[Problem | None], Response]
# The purpose of the links that each page asks for.
LINKS = {"sign-in": "magiclink", "sign-up": "signup", "forgot-password": "recovery"}


def destination() -> Destination:
    """Return the destination in the page's query or the submitted form."""
    read = read_form if request.method == "POST" else read_query
    return Destination.read(read(form_schemas.Arrival()))


def form_page(template: str, own_path: str, **values: Any) -> Response:
    """Show a form that leads to the destination, and that GET of `own_path` shows too."""
    to = destination()
    here = f"/{to.path(own_path)}"
    return page(template, script=True, form_target=origin(to.url), to=to, here=here, **values)


def address_of(form: Mapping[str, Any]) -> str:
    """Return the email or phone of a form."""
    return form.get("email") or form["phone"]


def code_page(
    path: str, typed_address: str, *, problem: Problem | None = None, has_asked: bool = False
) -> Response:
    """Ask for the code of a mail or an SMS, which `path`/verify takes.

    The page waits for the link of the mail if it, or the page before, has asked for that: `has_asked`.
    """
    has_asked = has_asked or "has_asked" in request.form
    if problem and problem.error_code == "user_banned":
        # The code is used, here: the page would take the link for one that another browser has used.
        has_asked = False
    shown = {"typed_address": typed_address, "shown_address": address(masked(typed_address))}
    channel = "" if is_email(typed_address) else "_phone"
    names = {"purpose": path.replace("-", "_") + channel, "channel": channel}
    again = path if path == "forgot-password" else f"{path}/code"
    return form_page(
        "code.html", path, path=path, again=again, problem=problem, has_asked=has_asked, **names, **shown
    )


def code_form(path: str, first: Form, *, is_asked_again: bool = False) -> Form:
    """Return the form for the code that was sent, or the first one if none was.

    With `is_asked_again`, one was sent if the form asks for another: it still works.
    """

    def form(problem: Problem | None = None) -> Response:
        typed = request.form.get("email", "")
        has_code = typed and (not is_asked_again or "again" in request.form)
        return code_page(path, typed, problem=problem) if has_code else first(problem)

    return form


def send_code(path: str, back: str, by_mail: str, by_sms: str = "sms", **members: Any) -> Response:
    """Send a message of these kinds to the address of the form, if it has a user, and ask for its code."""
    form = read_form(form_schemas.AddressForm())
    body = {**form, **members, "redirect_to": back, **waiting.bound()}
    request_message(by_mail if "email" in form else by_sms, body)
    return code_page(path, address_of(form), has_asked=True)


def submit_code(path: str, link_type: str) -> Response:
    """Sign the browser in with the code of a form. Raises `ApiError`."""
    form = read_form(form_schemas.CodeForm())
    # First, because the code of a used link would count as a wrong one.
    if "email" in form and (response := go_on_if_used(path, form["email"])):
        return response
    proof = by_code(address_of(form), form["code"])
    outcome = spend(link_type if "email" in form else "sms", proof, redirects=False)
    return arrive(outcome.session, *_onward(path))


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
    session = None if known else waiting.continue_sign_up(email)
    if session:
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
        typed = address_of(read_form(form_schemas.AddressForm()))
        return code_page("sign-up", typed, problem=problem)
    if problem and problem.error_code == "insufficient_permissions" and (known := browser_sessions.resume()):
        # Another window has signed in meanwhile. Signing in again would end the session of its application.
        return form_page("continue.html", "sign-in", problem=problem, known=known)
    ways = {"providers": _providers(), "has_passkeys": latchkey.settings.passkeys_enabled}
    return form_page("sign_in.html", "sign-in", problem=problem or told(), **ways)


_code_form = code_form("sign-in", sign_in_form)
_request_form = code_form("sign-in", sign_in_form, is_asked_again=True)


@blueprint.get("/sign-in")
def show_sign_in() -> Response:
    """Ask for an address and a password, or whether to continue with the account that is signed in."""
    to, known = destination(), browser_sessions.resume()
    if known and not to:
        return go_on(to)
    return form_page("continue.html", "sign-in", known=known) if known else sign_in_form()


@blueprint.post("/sign-in")
@shows(sign_in_form, limit="sign_in_rate_limit")
@own_form
@queued
@limited("login")
@audited("sign_in_refused", sign_in="password")
def submit_sign_in() -> Response:
    return arrive(sign_in_with_password(read_form(form_schemas.SignInForm())), destination())


@blueprint.post("/sign-in/code")
@shows(_request_form, limit="code_rate_limit")
@own_form
@limited("recover")
def request_sign_in_code() -> Response:
    """Send a code, if the address has a user, and ask for it."""
    return send_code("sign-in", destination().own_url("sign-in"), "magiclink", create_user=False)


@blueprint.post("/sign-in/verify")
@shows(_code_form)
@own_form
@limited("verify")
@audited("verification_refused", sign_in="link")
def submit_sign_in_code() -> Response:
    return submit_code("sign-in", "email")


@blueprint.post("/sign-in/continue")
@signed_in(Level.AAL2)
@own_form
@limited("login")
def continue_signed_in() -> Response:
    """Hand the application a session for the user who is signed in."""
    return go_on(destination())


@blueprint.post("/sign-out")
@signed_in(Level.SESSION)
@own_form
@limited("logout", key=guard.caller_on_network)
def sign_out() -> Response:
    """End the browser's session with those of its applications, or all of the user's."""
    to, form = destination(), read_form(form_schemas.SignOutForm())
    browser_sessions.end(form["scope"])
    response = to_own(to.path("sign-in")) if to else page("signed_out.html", here="/sign-in")
    browser_sessions.forget(response)
    return response


def _providers() -> list[dict[str, str]]:
    """Return the links of the providers, which return here after the sign-in."""
    back = destination().own_url("sign-in")
    return [
        provider(name) | {"query": urlencode({"provider": name, "redirect_to": back})}
        for name in latchkey.providers
    ]
