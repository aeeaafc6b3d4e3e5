"""The requirement of an organization that its members sign in with its own provider, on our pages."""

from flask import Blueprint, Response

from auth.core.text.names import PREFIX
from auth.extensions.organizations import access, lifecycle, sign_in
from auth.extensions.organizations.pages import PATH, changing, form_page, object_of, showing, shut_out
from auth.html.page import addresses, redirect_to_own
from auth.html.problems import Problem
from auth.rules.organizations import OWNER
from auth.web import Level, fields
from auth.web.asked import current_asked
from auth.web.context import latchkey
from auth.web.input import read_form, read_query
from auth.web.schemas import Input
from sql import queries

blueprint = Blueprint("organization_own_requirement", __name__)

_RequirementForm = Input.of(own_provider=fields.Choice("true", "false", required=True))
_PageQuery = Input.of(page=fields.PageNumber())


@blueprint.get("/account/organizations/<slug>/sign-in/requirement")
@showing(Level.PROOF)
def show_own_requirement(slug: str, problem: Problem | None = None) -> Response:
    """Say whom the requirement shuts out, or whom lifting it lets in again, before the button.

    An owner whose session the provider did not open reads why that is needed, and is led to its sign-in.
    """
    asked = current_asked()
    organization = access.find_admitted(asked, slug, OWNER)
    enabled = [each for each in sign_in.listed(asked, organization) if each["enabled"]]
    domains = [domain for each in enabled for domain in each["domains"]]
    present = object_of(organization)["requires"]
    requires = present | {"aal": "aal1", "providers": [f"{PREFIX}{each['id']}" for each in enabled]}
    step = shut_out.step_of_caller(organization, requires, f"organizations/{slug}/sign-in/requirement")
    if step is None:
        access.require_proof(asked, organization)
    is_on = "providers" in present
    offer: shut_out.Offer = "lift" if is_on else "provider" if not domains else "step" if step else "require"
    row = queries.list_without_own_sign_in(
        latchkey.db, organization_id=organization.id, **shut_out.first_names()
    )
    return form_page(
        "own_requirement",
        organization,
        problem,
        offer=offer,
        step=step,
        domains=addresses(domains),
        counts=shut_out.counts_of(row),
        unable=row.unable,
        names=shut_out.names_of(row),
    )


@blueprint.get("/account/organizations/<slug>/sign-in/requirement/members")
@showing(Level.AAL2)
def list_without_own_sign_in(slug: str) -> Response:
    organization, number = access.find_admitted(current_asked(), slug, OWNER), read_query(_PageQuery)["page"]
    row = queries.list_without_own_sign_in(
        latchkey.db, organization_id=organization.id, **shut_out.on_page(number)
    )
    return shut_out.show_members(organization, "sign-in/requirement", row, number)


@blueprint.post("/account/organizations/<slug>/sign-in/requirement")
@changing("change_organization", shown=show_own_requirement, level=Level.PROOF)
def submit_own_requirement(slug: str) -> Response:
    asked, requires_it = current_asked(), read_form(_RequirementForm)["own_provider"] == "true"
    lifecycle.change(asked, access.find(asked, slug), {"requires": {"own_provider": requires_it}})
    done = "own_provider_required" if requires_it else "own_provider_lifted"
    return redirect_to_own(f"{PATH}/{slug}/sign-in#providers", done)
