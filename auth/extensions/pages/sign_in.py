"""Signing in and up, and the requests for their codes."""

import functools
from collections.abc import Collection
from typing import Any, cast
from urllib.parse import urlencode

from flask import Blueprint, Response, request

from auth.core.net.redirects import with_query
from auth.core.providers.client import Provider
from auth.extensions.pages.waiting import (
    address_of_page,
    code_page,
    code_page_again,
    redirect_to_code,
    redirect_when_sent,
    send_code,
)
from auth.flows.messages import outgoing
from auth.flows.sessions.token_response import IssuedSession
from auth.flows.sign_in import waiting
from auth.flows.sign_in.oauth import find_provider
from auth.flows.sign_in.passwords import sign_in_with_password
from auth.flows.sign_up.sign_up import sign_up as register
from auth.html import browser_sessions, form_schemas, forms
from auth.html.browser_sessions import signed_in
from auth.html.destinations import destination, form_page
from auth.html.page import identifier, provider, redirect_to_own
from auth.html.problems import Problem, form, problem_of_redirect, why_ended
from auth.html.providers import begin_sign_in
from auth.html.redirects import (
    LAST_USED,
    Destination,
    is_expected,
    redirect_after_sign_in,
    redirect_onward,
    redirect_with_cookie,
)
from auth.web import Level, audited, cookies
from auth.web.asked import current_asked
from auth.web.context import latchkey
from auth.web.input import read_form
from sql import queries

blueprint = Blueprint("sign_in", __name__)

# The message of a redirect to the sign-in page if the browser had a session.
_ENDED = "session_expired"
# The message of a redirect to the sign-in page if the company's provider may not sign in this user.
_CONFLICT = "user_sso_conflict"
_BY_PASSWORD = "password"  # noqa: S105 (a value of `way`)


@blueprint.get("/sign-in")
def show_sign_in() -> Response:
    """Ask for an address and a password, or whether to continue with the signed-in account."""
    to, session = destination(), browser_sessions.resume()
    if session is None:
        return sign_in_page()
    if not to or (request.method == "GET" and is_expected(to)):
        return redirect_after_sign_in(to)
    return form_page("continue.html", "sign-in", problem=problem_of_redirect(), user=session)


def sign_in_page(problem: Problem | None = None, unknown: str | None = None) -> Response:
    """Show the page. `unknown` is the credential id of a passkey for the browser to forget."""
    is_old = problem is not None and problem.error_code == "insufficient_permissions"
    if is_old and (session := browser_sessions.resume()):
        # Another window has signed in meanwhile. Signing in again would end the session of its application.
        return form_page("continue.html", "sign-in", problem=problem, user=session)
    error_code = forms.signed_value("error_code")
    # The form would send the address of a user whom the provider may not sign in there again.
    way = _BY_PASSWORD if error_code.endswith(_CONFLICT) else _way()
    conflict = _conflict(error_code)
    why = (why_ended() if error_code in ("", _ENDED) else None) or problem_of_redirect()
    signal = {"rpId": latchkey.relying_party.id, "credentialId": unknown}
    return _page_with_providers(
        "sign_in.html",
        "sign-in",
        way=way,
        conflict=conflict,
        problem=problem or (None if conflict else why),
        sign_up=_path("sign-up", way),
        signals={"signalUnknownCredential": signal} if unknown else {},
    )


def _conflict(error_code: str) -> "queries.SelectTypedAddress | None":
    """Return the address that the company's provider may not sign in yet, also after a failed form."""
    if error_code == _CONFLICT:
        return address_of_page()
    return waiting.typed_address(current_asked(), request.form.get("conflict", ""))


def _sign_in_again(problem: Problem) -> Response:
    if problem.error_code in ("email_not_confirmed", "phone_not_confirmed"):
        # The password was right.
        (address,) = read_form(form_schemas.AddressForm).values()
        return redirect_to_code(
            "sign-up", address, cookies.bind_to_browser(), has_asked=False, problem=problem
        )
    return sign_in_page(problem)


@blueprint.post("/sign-in")
@form("sign_in_with_password", shown=_sign_in_again, limit_text="sign_in_rate_limit", is_queued=True)
@audited("sign_in_refused", sign_in="password")
def submit_sign_in() -> Response:
    if _way():
        credentials = read_form(form_schemas.SignInForm)
    else:
        credentials = read_form(form_schemas.AddressForm)
        if customers_provider := _customers_provider(credentials.get("email")):
            return begin_sign_in(customers_provider, destination().own_url("sign-in"), status=303)
        credentials |= read_form(form_schemas.PasswordForm)
    session = sign_in_with_password(current_asked(), credentials, hook=None)
    return redirect_with_cookie(destination().own_url("sign-in"), session, way="password", may_offer=True)


@blueprint.post("/sign-in/code")
@form(
    "request_sign_in",
    shown=functools.partial(code_page_again, "sign-in", sign_in_page),
    limit_text="code_rate_limit",
)
def submit_sign_in_code() -> Response:
    """Send a code if the address has a user, or is invited to an organization, and ask for it."""
    return _redirect_to_company(destination()) or send_code(
        "sign-in", destination().own_url("sign-in"), "magiclink", create_user="invited"
    )


@blueprint.post("/sign-in/continue")
@form("continue_sign_in", level=Level.AAL2)
def continue_signed_in() -> Response:
    """Give the application a session of the signed-in user."""
    return redirect_onward(destination())


@blueprint.get("/sign-in/here")
@signed_in(Level.AAL2)
def show_signed_in() -> Response:
    """Continue to the application in a browser that did not request the link that signed it in."""
    person = current_asked().live_caller()
    account = person.email or person.phone
    return form_page("signed_in.html", "sign-in/here", problem=problem_of_redirect(), account=account)


@blueprint.get("/sign-up")
def show_sign_up(problem: Problem | None = None) -> Response:
    if problem is None and (browser_sessions.resume() or identifier() is None):
        return redirect_to_own(destination().path("sign-in"))
    shown = {"way": _way(), "sign_in": _path("sign-in", _way()), "problem": problem or problem_of_redirect()}
    return _page_with_providers("sign_up.html", "sign-up", **shown)


@blueprint.post("/sign-up")
@form("sign_up", shown=show_sign_up, is_queued=True)
@audited("sign_up_refused")
def submit_sign_up() -> Response:
    """Register a user and ask for the code. A taken address gets the same page."""
    to = destination().or_site()
    if company := _redirect_to_company(to):
        return company
    body, browser = read_form(form_schemas.SignInForm), cookies.bind_to_browser()
    recipient = body.get("email") or body["phone"]
    body |= {"data": {}, "redirect_to": to.own_url("sign-in"), **browser}
    asked = current_asked()
    if latchkey.settings.autoconfirm:
        session = cast(IssuedSession, register(asked, body))
        return redirect_with_cookie(to.own_url("sign-in"), session, way="password")
    wait = outgoing.seconds_to_wait(asked, recipient)
    register(asked, body)
    return redirect_when_sent("sign-up", recipient, browser, wait)


@blueprint.post("/sign-up/code")
@form("request_confirmation", shown=functools.partial(code_page, "sign-up"))
def submit_sign_up_code() -> Response:
    """Send the confirmation again, and ask for its code."""
    return send_code("sign-up", destination().or_site().own_url("sign-in"), "signup", "sms_signup")


@blueprint.get("/forgot-password")
def show_forgot_password(problem: Problem | None = None) -> Response:
    shown_problem = problem or problem_of_redirect()
    return form_page(
        "forgot_password.html", "forgot-password", problem=shown_problem, typed_address=_typed_address()
    )


@blueprint.post("/forgot-password")
@form("request_recovery", shown=functools.partial(code_page_again, "forgot-password", show_forgot_password))
def submit_forgot_password() -> Response:
    """Send a code, by email with a link, if the address has a user, and ask for it."""
    return send_code("forgot-password", destination().or_site().own_url("new-password"), "recovery")


@blueprint.post("/sign-in/address")
@form("carry_address")
def carry_address() -> Response:
    """Redirect to "Forgot your password?" and keep the typed address, which no URL may contain."""
    path, email = destination().path("forgot-password"), read_form(form_schemas.CarriedForm)["email"]
    if not email:
        return redirect_to_own(path)
    address_id = waiting.keep_address(current_asked(), email, **cookies.bind_to_browser(), has_asked=False)
    return redirect_to_own(with_query(path, {"typed": address_id}))


def _page_with_providers(template: str, path: str, **values: Any) -> Response:
    to = destination()
    return form_page(
        template,
        path,
        to=to,
        typed_address=_typed_address(),
        providers=provider_links(to.own_url("sign-in"), among=latchkey.providers),
        last_used=cookies.read(LAST_USED),
        **values,
    )


def provider_links(back: str, among: Collection[str], **query: str) -> list[dict[str, str | None]]:
    """Return the links of those of the settings' providers that are `among` these names.

    The sign-ins return to `back`.
    """
    return [
        provider(name) | {"query": urlencode({"provider": name, "redirect_to": back, **query})}
        for name in latchkey.providers
        if name in among
    ]


def _way() -> str | None:
    """Return `password` if the user has chosen a password or a code instead of the company's sign-in."""
    return _BY_PASSWORD if request.values.get("way") == _BY_PASSWORD else None


def _path(page: str, way: str | None) -> str:
    path = destination().path(page)
    return with_query(path, {"way": way}) if way else path


def _redirect_to_company(to: Destination) -> Response | None:
    """Redirect the form with an address of a company, whether or not it has a user, to the company's page.

    A user who has chosen another way stays, also on the page of a code, whose form has no address.
    """
    if _way() or "typed" in request.form:
        return None
    email = read_form(form_schemas.AddressForm).get("email")
    if not email or not _name_of_provider(email):
        return None
    address_id = waiting.keep_address(current_asked(), email, **cookies.bind_to_browser(), has_asked=False)
    return redirect_to_own(with_query(to.path("sign-in/company"), {"typed": address_id}))


def _customers_provider(email: str | None) -> Provider | None:
    name = _name_of_provider(email) if email else None
    return find_provider(current_asked(), name) if name else None


def _name_of_provider(email: str) -> str | None:
    """Return the name of the provider for the domain of an address, whether or not it has a user."""
    return next(filter(None, (each.provider_of(email) for each in latchkey.extensions)), None)


def _typed_address() -> str:
    row = address_of_page()
    return row.address if row else ""
