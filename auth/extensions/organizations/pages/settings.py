"""Settings of an organization on our pages: its name, its requirement, its end."""

from flask import Blueprint, Response

from auth.extensions.organizations import access, lifecycle
from auth.extensions.organizations.pages import PATH, changing, form_page, showing
from auth.html.page import redirect_to_own
from auth.html.problems import Problem
from auth.rules.organizations import OWNER
from auth.web import Level, fields
from auth.web.asked import current_asked
from auth.web.context import latchkey
from auth.web.errors import ApiError
from auth.web.input import read_form
from auth.web.schemas import Input
from sql import queries

blueprint = Blueprint("organization_settings", __name__)

_NameForm = Input.of(name=fields.OrganizationName(required=True))
_RequirementForm = Input.of(aal=fields.Choice("aal1", "aal2", required=True))


@blueprint.get("/account/organizations/<slug>/name")
@showing(Level.AAL2)
def show_name(slug: str, problem: Problem | None = None) -> Response:
    return form_page("name", access.find_admitted(current_asked(), slug, OWNER), problem)


@blueprint.post("/account/organizations/<slug>/name")
@changing("change_organization", shown=show_name, level=Level.AAL2)
def submit_name(slug: str) -> Response:
    asked, name = current_asked(), read_form(_NameForm)["name"].strip()
    lifecycle.change(asked, access.find(asked, slug), {"name": name})
    return redirect_to_own(f"{PATH}/{slug}#settings", "organization_renamed")


@blueprint.get("/account/organizations/<slug>/requirement")
@showing(Level.PROOF)
def show_requirement(slug: str, problem: Problem | None = None) -> Response:
    """Say who would lose access before the requirement is made."""
    asked = current_asked()
    organization = access.find_admitted(asked, slug, OWNER)
    if asked.caller.aal < "aal2":
        # The owner who requires a second step must have given one.
        raise ApiError("insufficient_aal")
    access.require_proof(asked, organization)
    counts = queries.count_members(latchkey.db, organization_id=organization.id)
    return form_page("requirement", organization, problem, counts=counts)


@blueprint.post("/account/organizations/<slug>/requirement")
@changing("change_organization", shown=show_requirement, level=Level.PROOF)
def submit_requirement(slug: str) -> Response:
    asked, aal = current_asked(), read_form(_RequirementForm)["aal"]
    lifecycle.change(asked, access.find(asked, slug), {"requires": {"aal": aal}})
    return redirect_to_own(f"{PATH}/{slug}#settings", f"requirement_{aal}")


@blueprint.get("/account/organizations/<slug>/end")
@showing(Level.PROOF)
def show_end(slug: str, problem: Problem | None = None) -> Response:
    organization = access.find_admitted(current_asked(), slug, OWNER)
    access.require_proof(current_asked(), organization)
    return form_page("end", organization, problem)


@blueprint.post("/account/organizations/<slug>/end")
@changing("change_organization", shown=show_end, level=Level.PROOF)
def submit_end(slug: str) -> Response:
    asked = current_asked()
    lifecycle.end(asked, access.find(asked, slug), {})
    return redirect_to_own("account#organizations", "organization_ended")
