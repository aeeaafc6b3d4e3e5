"""Pages that ask for a code, and wait until the emailed link is opened.

Forms redirect to them. The URL contains the id of the address, so that the browser can return to the page.
"""

import functools
from collections.abc import Callable, Mapping
from typing import Any

from flask import Blueprint, Response, jsonify, request
from flask.typing import ResponseReturnValue

from auth.core.addresses import is_email, kind_of
from auth.core.net.redirects import with_query
from auth.flows.links.finding import by_code
from auth.flows.links.spending import ToPage, spend
from auth.flows.messages import outgoing
from auth.flows.messages.message_requests import request_message
from auth.flows.sign_in import waiting
from auth.html import browser_sessions, form_schemas
from auth.html.destinations import destination, form_page
from auth.html.forms import is_from_own_page
from auth.html.page import address, next_code, redirect_to_own, text
from auth.html.problems import Problem, form, problem_of, problem_of_redirect
from auth.html.redirects import Destination, done_of, redirect_with_cookie
from auth.web import View, audited, cookies
from auth.web.asked import current_asked
from auth.web.errors import ApiError, found
from auth.web.input import read_form
from sql import queries

blueprint = Blueprint("waiting", __name__)

# The purpose of each page's links.
LINKS = {"sign-in": "magiclink", "sign-up": "signup", "forgot-password": "recovery"}


def address_of_page() -> "queries.SelectTypedAddress | None":
    """Return the address of the page or the submitted form, if this browser has typed it."""
    return waiting.typed_address(current_asked(), request.values.get("typed", ""))


@blueprint.get("/sign-in/code", defaults={"path": "sign-in"})
@blueprint.get("/sign-up/code", defaults={"path": "sign-up"})
@blueprint.get("/forgot-password/code", defaults={"path": "forgot-password"})
def code_page(path: str, problem: Problem | None = None) -> Response:
    """Ask for the code in an email or SMS, which `path`/verify takes.

    The page waits for the emailed link if this browser has requested one.
    """
    asked = current_asked()
    row, (to, page_after) = address_of_page(), _onward(path)
    if row is None:
        # The address has expired, or another browser has opened the URL.
        error_code = "insufficient_permissions" if "typed" in request.values else ""
        return redirect_to_own(destination().path(path), error_code=error_code)
    used_link = None if problem else waiting.used_link(asked, row.address, LINKS[path])
    session = browser_sessions.resume() if used_link else None
    if used_link and session and session.user_id == used_link.user_id:
        return redirect_to_own(to.path(page_after))
    channel = "" if is_email(row.address) else "_phone"
    # The code of a banned user is used up, and its link with it.
    is_used_up = used_link is not None or (problem is not None and problem.error_code == "user_banned")
    countdown = next_code(outgoing.seconds_to_wait(asked, row.address))
    return form_page(
        "code.html",
        with_query(f"{path}/code", {"typed": row.id}),
        path=path,
        again=path if path == "forgot-password" else f"{path}/code",
        typed=row.id,
        recipient=address(row.address),
        change=with_query(destination().path(path), {"typed": row.id}),
        purpose=path.replace("-", "_") + channel,
        channel=channel,
        is_used=used_link is not None,
        has_asked=row.has_asked,
        waits=row.has_asked and not channel and not is_used_up,
        sign_in=with_query(to.path("sign-in"), {"typed": row.id}),
        problem=problem or (None if used_link else problem_of_code(countdown["again_wait"])),
        **countdown,
    )


def code_page_again(path: str, first_page: Callable[[Problem], Response], problem: Problem) -> Response:
    """Show a refused request for a code on the page that sent it: that of the code, or the one before."""
    return code_page(path, problem) if "typed" in request.form else first_page(problem)


def problem_of_code(wait: object) -> Mapping[str, Any] | None:
    """Return the problem of the redirect to this page, or that the opened link is still unused."""
    return (
        {"text": text("errors", "link_not_opened")} if "opened" in request.args else problem_of_redirect(wait)
    )


def redirect_to_code(
    path: str,
    recipient: str,
    browser: cookies.BrowserBinding,
    *,
    has_asked: bool,
    problem: Problem | None = None,
) -> Response:
    """Redirect to the page that asks for the code of an address and shows the problem, if any."""
    query = {"typed": waiting.keep_address(current_asked(), recipient, **browser, has_asked=has_asked)}
    error_code = problem.error_code if problem else ""
    return redirect_to_own(with_query(destination().path(f"{path}/code"), query), error_code=error_code)


def send_code(path: str, back: str, by_mail: str, by_sms: str = "sms", **members: Any) -> Response:
    """Send a message of these kinds if the address of the form has a user, and ask for its code."""
    asked, row = current_asked(), address_of_page()
    (recipient,) = [row.address] if row else read_form(form_schemas.AddressForm).values()
    wait, browser = outgoing.seconds_to_wait(asked, recipient), cookies.bind_to_browser()
    body = {kind_of(recipient): recipient, **members, "redirect_to": back, **browser}
    request_message(asked, by_mail if is_email(recipient) else by_sms, body)
    return redirect_when_sent(path, recipient, browser, wait)


def redirect_when_sent(path: str, recipient: str, browser: cookies.BrowserBinding, wait: float) -> Response:
    """Redirect to the page that asks for a code. It shows how long to `wait` if the request was too early."""
    problem = problem_of(outgoing.too_early(recipient, wait)) if wait else None
    return redirect_to_code(path, recipient, browser, has_asked=True, problem=problem)


@blueprint.post("/sign-in/verify", defaults={"path": "sign-in"})
@blueprint.post("/sign-up/verify", defaults={"path": "sign-up"})
@blueprint.post("/forgot-password/verify", defaults={"path": "forgot-password"})
@form("verify", shown=code_page)
@audited("verification_refused", sign_in="link")
def submit_code(path: str) -> Response:
    """Sign the browser in with the code of a form."""
    asked, row = current_asked(), address_of_page()
    # The code of a used link would count as wrong.
    if row is None or waiting.used_link(asked, row.address, LINKS[path]):
        return code_page(path)
    link_type = ("email" if path == "sign-in" else LINKS[path]) if is_email(row.address) else "sms"
    code = by_code(asked, row.address, read_form(form_schemas.CodeForm)["code"], asked.browser_hash)
    outcome = spend(asked, link_type, code, ToPage(waits_for=LINKS[path]))
    way = "code" if path == "sign-in" else "password"
    done = done_of(outcome)
    to, page_after = _onward("forgot-password" if done else path)
    session = found(outcome.session, "unexpected_failure")
    # A user who has just signed up or recovered the account has answered enough questions.
    may_offer = path == "sign-in"
    return redirect_with_cookie(to.own_url(page_after), session, way=way, done=done, may_offer=may_offer)


def _tells_old_page(view: View) -> View:
    """Answer a page of ours whose form is old: another tab has signed in since. Its script loads it again."""

    @functools.wraps(view)
    def answered(**kwargs: object) -> ResponseReturnValue:
        try:
            return view(**kwargs)
        except ApiError as error:
            if error.key != "form.insufficient_permissions" or not is_from_own_page():
                raise
        return jsonify(is_used=False, is_old=True)

    return answered


@blueprint.post("/waiting/state")
@_tells_old_page
@form("poll_link")
def show_waiting() -> Response:
    """Return to the browser that requested a link whether it was used."""
    row, path = address_of_page(), read_form(form_schemas.PageForm)["page"]
    used_link = waiting.used_link(current_asked(), row.address, LINKS[path]) if row else None
    return jsonify(is_used=used_link is not None)


def _onward(path: str) -> tuple[Destination, str]:
    """Return the destination after a page that asks for a code, and the next page."""
    if path == "sign-in":
        return destination(), path
    return destination().or_site(), "new-password" if path == "forgot-password" else "sign-in"
