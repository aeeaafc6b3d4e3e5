"""Asks the user for a proof. Sensitive changes need one from the last 15 minutes."""

from typing import Any

from flask import Blueprint, Response, request

from auth.core.net.redirects import with_query
from auth.core.text.masking import masked
from auth.extensions.pages.passkeys import own_passkeys
from auth.extensions.pages.profile import own_user
from auth.extensions.pages.sign_in import provider_links
from auth.flows.messages import outgoing
from auth.flows.messages.message_requests import send_reauthentication_code
from auth.flows.passkeys import assertions
from auth.flows.sign_in.reauthentication import code_address, has_proof, record_reauthentication
from auth.html import browser_sessions, form_schemas
from auth.html.admin.actions import title_and_page_above
from auth.html.browser_sessions import signed_in
from auth.html.challenges import may_challenge, sent_credential
from auth.html.destinations import destination
from auth.html.membership_steps import organization_asking_again
from auth.html.page import address, next_code, page, redirect_to_own
from auth.html.problems import Problem, form
from auth.html.redirects import Destination, own_page
from auth.web import Level, audited, cookies
from auth.web.asked import current_asked
from auth.web.errors import ApiError
from auth.web.input import read_form

blueprint = Blueprint("confirm", __name__)


def require_proof() -> None:
    """Redirect to the page below if the session has no proof."""
    asked = current_asked()
    if not has_proof(asked, asked.live_caller()):
        raise ApiError("reauthentication_needed")


@blueprint.get("/account/confirm")
@signed_in(Level.SESSION)
def show_confirmation(problem: Problem | None = None) -> Response:
    """Ask for the password, a code, a passkey or a new sign-in, or redirect to the page that asks for
    factors."""
    asked, next_page = current_asked(), request.values.get("next", "")
    person = asked.live_caller()
    if person.oldest_factor_at is not None and person.aal == "aal2":
        return redirect_to_own(destination().path("second-step"))
    by, is_sent, recipient = request.values.get("by", ""), "sent" in request.values, code_address(person)
    wait = outgoing.seconds_to_wait(asked, recipient) if is_sent and recipient else 0
    ways: dict[str, Any] = {}
    if by != "code":
        # Passkeys and providers prove more than an address.
        back = Destination(next=next_page if own_page(next_page) else None).own_url("sign-in")
        providers = {identity["provider"] for identity in own_user()["identities"]}
        # While passkeys are disabled, those that users have are still a proof.
        is_offered = own_passkeys() and may_challenge()
        ways["challenge"] = assertions.begin_proof(asked) if is_offered else None
        ways["providers"] = provider_links(back, among=providers, prompt="login")
    path = next_page.partition("?")[0]
    action, console = title_and_page_above(path) if path.startswith("console/") else (None, None)
    return page(
        "confirm.html",
        action=action,
        console=console,
        script=True,
        here="/" + (_own_path(sent="yes") if is_sent else _own_path()),
        problem=problem,
        organization=organization_asking_again(asked, next_page),
        next=next_page if own_page(next_page) else "account",
        by=by,
        has_password=person.password_hash is not None,
        account=person.email or person.phone,
        recipient=address(masked(recipient)) if recipient else None,
        **next_code(wait),
        is_sent=is_sent,
        **ways,
    )


def _own_path(**parameters: str) -> str:
    values = request.values
    query = {"by": "code"} if values.get("by") == "code" else {}
    query |= parameters
    query |= {"next": values["next"]} if own_page(values.get("next")) else {}
    return with_query("account/confirm", query) if query else "account/confirm"


@blueprint.post("/account/confirm")
@form("give_proof", shown=show_confirmation, level=Level.SESSION)
@audited("change_refused")
def submit_proof() -> Response:
    asked = current_asked()
    asked.live_caller()
    body = read_form(form_schemas.ProofForm) | {"browser_hash": asked.browser_hash}
    _, cookie = record_reauthentication(asked, body)
    browser_sessions.keep(cookie, asked.caller.aal)
    return redirect_to_own(own_page(request.form.get("next")) or "account")


@blueprint.post("/account/confirm/passkey")
@form("give_proof", shown=show_confirmation, level=Level.SESSION)
@audited("change_refused")
def submit_passkey_proof() -> Response:
    asked = current_asked()
    _, session = assertions.prove(asked, sent_credential(), owner=assertions.own_session(asked))
    browser_sessions.keep(session.cookie, session.aal)
    return redirect_to_own(own_page(request.form.get("next")) or "account")


@blueprint.post("/account/confirm/code")
@form("request_proof", shown=show_confirmation, level=Level.SESSION)
def request_proof_code() -> Response:
    send_reauthentication_code(current_asked(), **cookies.bind_to_browser())
    return redirect_to_own(_own_path(sent="yes"))
