"""Settings of an organization on our pages: its name, a second step that it requires, its end."""

from flask import Blueprint, Response

from auth.core.text.names import whole_line
from auth.extensions.organizations import access, lifecycle
from auth.extensions.organizations.pages import PATH, changing, form_page, object_of, showing, shut_out
from auth.html.page import redirect_to_own
from auth.html.problems import Problem
from auth.rules import organizations
from auth.rules.organizations import OWNER
from auth.web import Level, fields
from auth.web.asked import current_asked
from auth.web.context import latchkey
from auth.web.errors import ApiError
from auth.web.input import read_form, read_query
from auth.web.schemas import Input
from sql import queries

blueprint = Blueprint("organization_settings", __name__)

_NameForm = Input.of(name=fields.OrganizationName(required=True))
_RequirementForm = Input.of(aal=fields.Choice("aal1", "aal2", required=True))
_EndForm = Input.of(confirmation=fields.TypedText(load_default=""))
_PageQuery = Input.of(page=fields.PageNumber())


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
    """Say whom the requirement shuts out, or whom lifting it lets in again, before the button.

    An owner without a second step reads that it takes one, and is led there.
    """
    asked = current_asked()
    organization = access.find_admitted(asked, slug, OWNER)
    step = shut_out.step_of_caller(organization, {"aal": "aal2"}, f"organizations/{slug}/requirement")
    if step is None:
        access.require_proof(asked, organization)
    is_on = object_of(organization)["requires"]["aal"] == "aal2"
    offer: shut_out.Offer = "lift" if is_on else "step" if step else "require"
    row = queries.list_without_factor(latchkey.db, organization_id=organization.id, **shut_out.first_names())
    return form_page(
        "requirement",
        organization,
        problem,
        offer=offer,
        step=step,
        counts=shut_out.counts_of(row),
        names=shut_out.names_of(row),
    )


@blueprint.get("/account/organizations/<slug>/requirement/members")
@showing(Level.AAL2)
def list_without_factor(slug: str) -> Response:
    organization, number = access.find_admitted(current_asked(), slug, OWNER), read_query(_PageQuery)["page"]
    row = queries.list_without_factor(
        latchkey.db, organization_id=organization.id, **shut_out.on_page(number)
    )
    return shut_out.show_members(organization, "requirement", row, number)


@blueprint.post("/account/organizations/<slug>/requirement")
@changing("change_organization", shown=show_requirement, level=Level.PROOF)
def submit_requirement(slug: str) -> Response:
    asked, aal = current_asked(), read_form(_RequirementForm)["aal"]
    lifecycle.change(asked, access.find(asked, slug), {"requires": {"aal": aal}})
    return redirect_to_own(f"{PATH}/{slug}#settings", f"requirement_{aal}")


@blueprint.get("/account/organizations/<slug>/end")
@showing(Level.PROOF)
def show_end(slug: str, problem: Problem | None = None) -> Response:
    """Say what ends, and ask for the organization's name."""
    organization = access.find_admitted(current_asked(), slug, OWNER)
    access.require_proof(current_asked(), organization)
    most = shut_out.MOST_MEMBERS
    row = queries.count_what_ends(latchkey.db, organization_id=organization.id, most=most)
    return form_page(
        "end",
        organization,
        problem,
        typed=_typed_name(organization),
        members=row.members,
        has_more=row.members > most,
        invitations=row.invitations,
        providers=row.providers,
    )


@blueprint.post("/account/organizations/<slug>/end")
@changing("change_organization", shown=show_end, level=Level.PROOF)
def submit_end(slug: str) -> Response:
    asked, typed = current_asked(), read_form(_EndForm)["confirmation"]
    organization = access.find_admitted(asked, slug, OWNER)
    if not organizations.is_same_name(typed, _typed_name(organization)):
        raise ApiError("validation_failed", "confirmation: must be the organization's name")
    lifecycle.end(asked, organization, {})
    return redirect_to_own("account#organizations", "organization_ended")


def _typed_name(organization: access.VisibleOrganization) -> str:
    """Return the name that an owner types, as the page shows it: the short name if nobody sees the name."""
    return whole_line(organization.name) or organization.slug
