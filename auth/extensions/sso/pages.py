"""Signing in with a company, and moving an account to its sign-in.

Only a form sends a browser to a provider: neither a link nor an address that a page shows does.
"""

from dataclasses import replace

from flask import Blueprint, Response, request

from auth.core.net.redirects import with_query
from auth.core.providers.customers import host_of
from auth.core.text.names import PREFIX
from auth.extensions.sso import company, lookup
from auth.flows.sign_in.oauth import provider_named
from auth.flows.sign_in.reauthentication import has_proof, require
from auth.flows.sign_in.waiting import typed_address
from auth.html import form_schemas
from auth.html.browser_sessions import signed_in
from auth.html.destinations import destination, form_page
from auth.html.page import application, text
from auth.html.problems import Problem, form, problem_of_redirect
from auth.html.providers import begin_sign_in, redirect_caller
from auth.html.redirects import COMPANY
from auth.rules.identities import domain_of
from auth.web import Level, audited
from auth.web.asked import current_asked
from auth.web.context import latchkey
from auth.web.errors import ApiError, found
from auth.web.input import read_form

blueprint = Blueprint("company", __name__)

_PAGE = "sign-in/company"


@blueprint.get("/sign-in/company")
def show_sign_in(problem: Problem | None = None) -> Response:
    """Ask for an address, or for a press if this browser has typed one of a company."""
    typed = typed_address(current_asked(), request.values.get("typed", ""))
    row = lookup.of_address(latchkey, typed.address) if typed else None
    if typed and row:
        return form_page(
            "company/company.html",
            with_query(_PAGE, {"typed": typed.id}),
            problem=problem,
            typed=typed.id,
            email=typed.address,
            domain=domain_of(typed.address),
            own_way=with_query(destination().path("sign-in"), {"typed": typed.id}),
            provider_host=host_of(row.issuer),
        )
    if problem and problem.error_code == "sso_provider_not_found":
        domain = domain_of(request.form.get("email", typed.address if typed else "")).strip()
        problem = replace(problem, text=text("company", "unknown", domain=application(domain)))
    return form_page("company/sign_in.html", _PAGE, problem=problem, typed_address=typed and typed.address)


@blueprint.post("/sign-in/company")
@form("find_provider", shown=show_sign_in)
def submit_sign_in() -> Response:
    """Send the browser to the provider of the address, whether or not it has a user."""
    asked = current_asked()
    typed = typed_address(asked, request.form.get("typed", ""))
    email = typed.address if typed else read_form(form_schemas.EmailForm)["email"]
    row = found(lookup.of_address(latchkey, email), "sso_provider_not_found")
    provider = provider_named(asked, row.identifier)
    return begin_sign_in(provider, destination().own_url("sign-in"), status=303)


@blueprint.get("/account/company")
@signed_in(Level.PROOF)
def show_account(problem: Problem | None = None) -> Response:
    """Ask the caller to move to the company's sign-in, or to sign in there again."""
    asked = current_asked()
    person = asked.live_caller()
    try:
        row = company.of_caller(asked, person)
    except ApiError as error:
        # Not back at once: the page before may ask for the company's sign-in again.
        is_of_administrator = error.error_code != "sso_provider_not_found"
        reason = text("errors", "administrator_sso_conflict" if is_of_administrator else error.error_code)
        account = person.email or person.phone or "…"
        return form_page("company/none.html", COMPANY, status=404, reason=reason, account=account)
    if not row.is_linked:
        require(asked, company.MOVE)
    return form_page(
        "company/account.html",
        COMPANY,
        problem=problem or problem_of_redirect(),
        is_linked=row.is_linked,
        account=person.email,
        domain=row.domain,
        joins=row.joins,
        is_for_good=row.organization_id is None,
        provider_host=host_of(row.issuer),
    )


@blueprint.post("/account/company")
@form("move_to_company", shown=show_account, level=Level.PROOF)
@audited("change_refused")
def submit_account() -> Response:
    """Send the browser to the company's provider, with a flow that signs in nobody but the caller.

    In a session that the provider opened, it asks the user to authenticate there again.
    """
    asked, to = current_asked(), destination()
    person = asked.live_caller()
    row = company.of_caller(asked, person)
    provider = provider_named(asked, f"{PREFIX}{row.id}")
    asks_again = provider.name in asked.caller.providers
    if row.is_linked and not has_proof(asked, person):
        # A sign-in as every morning. After a proof, it may also replace the provider's subject.
        return begin_sign_in(provider, to.own_url("sign-in"), asks_again=asks_again, status=303)
    flow, response = redirect_caller(provider, to.own_url(COMPANY), asks_again=asks_again)
    company.begin_move(asked, row.id, flow)
    return response
