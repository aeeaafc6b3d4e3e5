"""Single sign-on of an organization on our pages: domains, providers, and their test."""

import json
from collections.abc import Mapping, Sequence
from typing import Any, Literal, NamedTuple

from flask import Blueprint, Response
from marshmallow.validate import Length

from auth.core.net.redirects import with_query
from auth.core.providers.customers import host_of
from auth.core.providers.places import is_out_of_place
from auth.core.text.names import PREFIX
from auth.extensions.organizations import access, domains, sign_in
from auth.extensions.organizations.pages import PATH, changing, form_page, hiding, notice, showing
from auth.extensions.organizations.sign_in_routes import ORGANIZATION_PROVIDER_CHANGE, NewOrganizationProvider
from auth.flows.admin import providers
from auth.flows.sign_in.oauth import provider_named
from auth.html.page import addresses, redirect_to_own
from auth.html.problems import Problem, problem_of_redirect
from auth.html.providers import redirect_caller
from auth.html.redirects import COMPANY, Destination
from auth.rules import organizations
from auth.rules.organizations import OWNER
from auth.web import Level, fields, g
from auth.web.asked import Asked, current_asked
from auth.web.context import latchkey
from auth.web.errors import ApiError, found
from auth.web.input import check, read_form
from auth.web.schemas import Input
from sql import queries

blueprint = Blueprint("organization_sign_in_pages", __name__)

_DomainForm = Input.of(domain=fields.TypedText(load_default=""))
_ChangeForm = Input.of(
    name=fields.TypedText(load_default=""),
    client_id=fields.TypedText(load_default=""),
    client_secret=fields.TypedText(load_default=""),
    member_role=fields.TypedText(load_default=""),
    # A provider signs in users of its domains alone.
    domains=fields.TypedItems(required=True, validate=Length(min=1)),
)
_ConnectForm = _ChangeForm.of(
    issuer=fields.TypedText(load_default=""),
    redirect_uri=fields.TypedText(load_default=""),
)
_ACTS = ("test", "on", "off", "delete")


class Product(NamedTuple):
    """What an organization has as its OpenID provider, with how its issuer looks, or the issuer itself."""

    title: str
    placeholder: str
    issuer: str = ""


_PRODUCTS = {
    "entra": Product("Microsoft Entra", "https://login.microsoftonline.com/TENANT-ID/v2.0"),
    "okta": Product("Okta", "https://YOUR-ORG.okta.com"),
    "google": Product("Google Workspace", "", "https://accounts.google.com"),
    "keycloak": Product("Keycloak", "https://keycloak.acme.example/realms/REALM"),
    "other": Product("", "https://login.acme.example"),
}


class Step(NamedTuple):
    """What an owner does next, with the domain or the id of the provider: it has the primary button."""

    name: Literal["domain", "record", "connect", "test", "on", "done"]
    of: str = ""


def _next_step(named: Sequence[Mapping[str, Any]], listed: Sequence[Mapping[str, Any]]) -> Step:
    """Return the step after those that the domains `named` and the providers `listed` have taken."""
    usable = [each for each in listed if not each["is_out_of_place"]]
    if any(each["enabled"] and each["domains"] for each in usable):
        return Step("done")
    pending = next((each for each in usable if not (each["enabled"] or each.get("is_blocked"))), None)
    if pending:
        return Step("on" if pending["may_turn_on"] else "test", pending["id"])
    if not named:
        return Step("domain")
    if not any(each["is_proved"] for each in named):
        return Step("record", named[0]["domain"])
    # A provider that is on without a domain signs in nobody until an owner gives it one.
    return Step("connect", next((each["id"] for each in usable if each["enabled"]), ""))


@blueprint.get("/account/organizations/<slug>/sign-in")
@showing(Level.AAL2)
def show_sign_in(slug: str, problem: Problem | None = None, domain: str = "") -> Response:
    """Show the steps to single sign-on. The `problem` may be about the record of a `domain`."""
    asked = current_asked()
    organization = access.find_admitted(asked, slug, OWNER)
    named = json.loads(queries.list_domains(latchkey.db, organization_id=organization.id).domains)
    proved = access.proved_domains(asked, latchkey.db, organization.id)
    named = [each | {"is_proved": each["domain"] in proved} for each in named]
    rows = queries.list_providers_of_organization(latchkey.db, organization_id=organization.id)
    listed = [_listed(asked, row) for row in rows]
    values = {"domains": named, "providers": listed, "step": _next_step(named, listed), "checked": domain}
    return form_page(
        "sign_in", organization, problem, notice=notice(), failure=problem or problem_of_redirect(), **values
    )


def _listed(asked: Asked, row: "queries.ListProvidersOfOrganization") -> dict[str, Any]:
    """Return a provider's object, with what the page says of it."""
    provider = providers.described(asked, row)
    is_own = f"{PREFIX}{provider['id']}" in g.caller.providers
    may_turn_on = organizations.may_turn_on(
        is_tested=provider.get("tried_at") is not None, is_own_session=is_own
    )
    at = addresses(provider["domains"])
    return {
        **provider,
        "may_turn_on": may_turn_on,
        "is_out_of_place": is_out_of_place(asked.settings, row),
        "at": at,
    }


@blueprint.post("/account/organizations/<slug>/sign-in/domains")
@changing("change_sign_in", shown=show_sign_in, level=Level.AAL2)
def submit_domain(slug: str) -> Response:
    asked, domain = current_asked(), read_form(_DomainForm)["domain"]
    domains.name_domain(asked, access.find(asked, slug), domain)
    return redirect_to_own(f"{PATH}/{slug}/sign-in", "domain_added")


@blueprint.post("/account/organizations/<slug>/sign-in/domains/<domain>")
@changing("change_sign_in", shown=show_sign_in, level=Level.AAL2)
@hiding
def submit_check_of_domain(slug: str, domain: str) -> Response:
    asked = current_asked()
    object = json.loads(domains.prove(asked, access.find(asked, slug), domain))
    # The look-up that proves a domain is its first.
    is_first = object["proved_at"] == object["checked_at"]
    return redirect_to_own(f"{PATH}/{slug}/sign-in", "domain_proved" if is_first else "domain_checked")


@blueprint.get("/account/organizations/<slug>/sign-in/domains/<domain>/remove")
@showing(Level.PROOF)
def show_removal_of_domain(slug: str, domain: str, problem: Problem | None = None) -> Response:
    asked = current_asked()
    organization = access.find_admitted(asked, slug, OWNER)
    domain = domains.named(asked, organization.id, domain)
    access.require_proof(asked, organization)
    return form_page("remove_domain", organization, problem, domain=domain)


@blueprint.post("/account/organizations/<slug>/sign-in/domains/<domain>/remove")
@changing("change_sign_in", shown=show_removal_of_domain, level=Level.PROOF)
def submit_removal_of_domain(slug: str, domain: str) -> Response:
    asked = current_asked()
    domains.forget(asked, access.find(asked, slug), domain, {})
    return redirect_to_own(f"{PATH}/{slug}/sign-in", "domain_removed")


@blueprint.get("/account/organizations/<slug>/sign-in/new")
@showing(Level.PROOF)
def show_products(slug: str) -> Response:
    organization = access.find_admitted(current_asked(), slug, OWNER)
    access.require_proof(current_asked(), organization)
    return form_page("products", organization, None, products=_PRODUCTS)


@blueprint.get("/account/organizations/<slug>/sign-in/new/<at>")
@showing(Level.PROOF)
def show_connect(slug: str, at: str, problem: Problem | None = None) -> Response:
    """Show how to register this service `at` a product, and the form for what comes of it."""
    asked, product = current_asked(), found(_PRODUCTS.get(at), "not_found")
    organization = access.find_admitted(asked, slug, OWNER)
    access.require_proof(asked, organization)
    proved = access.proved_domains(asked, latchkey.db, organization.id)
    values = {"at": at, "product": product, "redirect_uri": sign_in.next_redirect_uri(asked, organization)}
    return form_page("connect", organization, problem, proved=proved, **values)


@blueprint.post("/account/organizations/<slug>/sign-in/new/<at>")
@changing("change_sign_in", shown=show_connect, level=Level.PROOF)
def submit_connect(slug: str, at: str) -> Response:
    asked, form = current_asked(), read_form(_ConnectForm)
    body = check(NewOrganizationProvider, {name: value for name, value in form.items() if value})
    sign_in.connect(asked, access.find(asked, slug), body)
    return redirect_to_own(f"{PATH}/{slug}/sign-in#providers", "provider_connected")


@blueprint.get("/account/organizations/<slug>/sign-in/providers/<provider>/change")
@showing(Level.PROOF)
def show_change(slug: str, provider: str, problem: Problem | None = None) -> Response:
    asked = current_asked()
    organization = access.find_admitted(asked, slug, OWNER)
    object = sign_in.shown(asked, organization, provider)
    access.require_proof(asked, organization)
    return form_page("change_provider", organization, problem, provider=object)


@blueprint.post("/account/organizations/<slug>/sign-in/providers/<provider>/change")
@changing("change_sign_in", shown=show_change, level=Level.PROOF)
def submit_change(slug: str, provider: str) -> Response:
    asked, form = current_asked(), read_form(_ChangeForm)
    body = form | {"member_role": form["member_role"] or None}
    if not form["client_secret"]:
        # The provider keeps its secret.
        del body["client_secret"]
    body = check(ORGANIZATION_PROVIDER_CHANGE, body)
    sign_in.change(asked, access.find(asked, slug), provider, body)
    return redirect_to_own(f"{PATH}/{slug}/sign-in#providers", "provider_changed")


@blueprint.get("/account/organizations/<slug>/sign-in/providers/<provider>/<act>")
@showing(Level.PROOF)
def show_act(slug: str, provider: str, act: str, problem: Problem | None = None) -> Response:
    """Ask an owner for an act on a provider, with a fresh proof."""
    asked = current_asked()
    if act == "move":
        # Operators of 0.7 gave users this URL.
        return redirect_to_own(with_query(COMPANY, {"next": f"organizations/{slug}"}))
    if act not in _ACTS:
        raise ApiError("not_found")
    organization = access.find_admitted(asked, slug, OWNER)
    object = sign_in.shown(asked, organization, provider)
    access.require_proof(asked, organization)
    values = {"doing": act, "host": host_of(object["issuer"]), "at": addresses(object["domains"])}
    return form_page("provider_act", organization, problem, provider=object, **values)


@blueprint.post("/account/organizations/<slug>/sign-in/providers/<provider>/<act>")
@changing("change_sign_in", shown=show_act, level=Level.PROOF)
@hiding
def submit_act(slug: str, provider: str, act: str) -> Response:
    asked = current_asked()
    if act == "test":
        return _test(slug, provider)
    if act == "delete":
        sign_in.delete(asked, access.find(asked, slug), provider, {})
    elif act in _ACTS:
        sign_in.change(asked, access.find(asked, slug), provider, {"enabled": act == "on"})
    else:
        raise ApiError("not_found")
    return redirect_to_own(f"{PATH}/{slug}/sign-in#providers", f"provider_{act}")


def _test(slug: str, name: str) -> Response:
    asked = current_asked()
    # The role is asked for before the document is fetched.
    row = providers.found_provider(asked, name, access.find_admitted(asked, slug, OWNER).id)
    provider = provider_named(asked, f"{PREFIX}{row.id}", is_test=True)
    back = Destination(next=f"organizations/{slug}/sign-in").own_url("sign-in")
    flow, response = redirect_caller(provider, back)
    sign_in.begin_test(asked, row, flow)
    return response
