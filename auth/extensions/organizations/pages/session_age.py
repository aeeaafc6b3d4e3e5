"""How old a sign-in may be for a membership to count, on our pages."""

from typing import Any

from flask import Blueprint, Response

from auth.extensions.organizations import access, lifecycle
from auth.extensions.organizations.pages import (
    PATH,
    age_in_words,
    changing,
    form_page,
    object_of,
    showing,
    shut_out,
)
from auth.html.page import redirect_to_own, text
from auth.html.problems import Problem
from auth.rules.organizations import OWNER
from auth.web import Level, fields
from auth.web.asked import current_asked
from auth.web.context import latchkey
from auth.web.input import read_form
from auth.web.schemas import Input
from sql import queries

blueprint = Blueprint("organization_session_age", __name__)

# The seconds that owners may choose on the page. The API takes any between the bounds.
_AGES = (3_600, 4 * 3_600, 8 * 3_600, 12 * 3_600, 86_400, 7 * 86_400, 30 * 86_400)
_AgeForm = Input.of(max_age=fields.TypedSessionAge(required=True))


@blueprint.get("/account/organizations/<slug>/requirement/age")
@showing(Level.PROOF)
def show_age(slug: str, problem: Problem | None = None) -> Response:
    """Say for each choice how many members it shuts out now.

    An owner whose own sign-in is too old for some of them reads that, and is led to sign in again.
    """
    asked = current_asked()
    organization = access.find_admitted(asked, slug, OWNER)
    required = object_of(organization)["requires"]
    own_requires = required | {"max_age": _AGES[0]}
    step = shut_out.step_of_caller(organization, own_requires, f"organizations/{slug}/requirement/age")
    if step is None:
        access.require_proof(asked, organization)
    present = required.get("max_age")
    ages = sorted({*_AGES, *([present] if present else [])})
    row = queries.count_older_sign_ins(
        latchkey.db, organization_id=organization.id, ages=ages, most=shut_out.MOST_MEMBERS
    )
    return form_page(
        "session_age",
        organization,
        problem,
        step=step,
        present=present or 0,
        choices=[_choice(age, row.members, older) for age, older in zip(ages, row.older, strict=True)],
    )


def _choice(age: int, members: int, older: int) -> dict[str, Any]:
    counts = {"n": older, "members": members, "has_more": members > shut_out.MOST_MEMBERS}
    hint = text("organization_settings", "age_older", **counts) if older else None
    return {"age": age, "title": age_in_words(age), "hint": hint}


@blueprint.post("/account/organizations/<slug>/requirement/age")
@changing("change_organization", shown=show_age, level=Level.PROOF)
def submit_age(slug: str) -> Response:
    asked, max_age = current_asked(), read_form(_AgeForm)["max_age"]
    lifecycle.change(asked, access.find(asked, slug), {"requires": {"max_age": max_age}})
    return redirect_to_own(f"{PATH}/{slug}#settings", "session_age")
