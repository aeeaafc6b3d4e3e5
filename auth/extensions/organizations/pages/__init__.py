"""What the pages of an organization share."""

import functools
import json
from collections.abc import Callable, Iterable, Mapping
from datetime import timedelta
from typing import Any

from flask import Response, request
from flask.typing import ResponseReturnValue
from markupsafe import Markup

from auth.core.text import languages, names
from auth.extensions.organizations.access import VisibleOrganization
from auth.html import forms
from auth.html.browser_sessions import signed_in
from auth.html.page import address, application, chosen_language, has_text, page, text
from auth.html.problems import Problem, form
from auth.rules.organizations import ADMIN, MEMBER, OWNER, may_manage
from auth.web import Level, View, audited
from auth.web.context import latchkey
from auth.web.errors import ApiError
from sql import queries

PATH = "account/organizations"
# Members whose roles a form offers. Any other role can be typed.
_MOST_READ = 1_000
# Refusals that are one page, which does not tell whether the organization exists.
_HIDDEN = {
    "organization_not_found", "organization.insufficient_permissions", "member.user_not_found",
    "user_not_found", "invitation_not_found", "domain_not_found", "custom_provider_not_found",
}  # fmt: skip


def showing(level: Level) -> Callable[[View], View]:
    """Return a decorator of the pages of an organization, for signed-in users who may see them."""
    return lambda view: signed_in(level)(hiding(view))


def changing(operation: str, *, shown: View | None = None, level: Level) -> Callable[[View], View]:
    """Return a decorator of the views that such a page sends a form to."""
    return lambda view: form(operation, shown=shown, level=level)(audited("change_refused")(view))


def hiding(view: View) -> View:
    """Show one page for all that the caller may not see."""

    @functools.wraps(view)
    def shown(*args: object, **kwargs: object) -> ResponseReturnValue:
        try:
            return view(*args, **kwargs)
        except ApiError as error:
            if error.key in _HIDDEN:
                raise ApiError("not_found", reason=error.error_code) from None
            raise

    return shown


def role_title(role: str, *, begins: bool = False) -> Markup:
    """Return our text for a role that we know, with a capital if it `begins` a line; else the word itself."""
    if role not in (OWNER, ADMIN, MEMBER):
        return application(role)
    title = text("organizations", role)
    return title[:1].upper() + title[1:] if begins else title


def notice() -> Markup | None:
    """Return the message of our redirect to this page, if any."""
    done = forms.signed_value("done")
    return text("done", done) if has_text("done", done) else None


def form_page(
    name: str, organization: VisibleOrganization, problem: Problem | None, **values: Any
) -> Response:
    """Show a page with one form about an organization."""
    values |= {"organization": object_of(organization), "problem": problem}
    return page(f"organizations/{name}.html", script=True, here=request.path, **values)


def age_in_words(seconds: int) -> str:
    """Return an age in words, such as `12 hours`."""
    return languages.duration(timedelta(seconds=seconds), chosen_language())


def object_of(organization: VisibleOrganization) -> dict[str, Any]:
    """Return the object of an organization, with the caller's role there, for templates."""
    return json.loads(organization.object) | {"role": organization.role}


def has_name(member: Mapping[str, Any]) -> bool:
    """Whether pages call a member by the name, which members choose, instead of the address."""
    return names.person_in_line(member["name"] or "") is not None


def name_of(member: Mapping[str, Any]) -> Markup:
    """Return the name of a member, else the address, if the caller sees it."""
    if has_name(member):
        return application(member["name"])
    email = member.get("email")
    return address(email) if email else text("organizations", "unnamed")


def address_below(member: Mapping[str, Any]) -> Markup | None:
    """Return the address of a member whom `name_of` calls by the name, if the caller may see it."""
    email = member.get("email")
    return address(email) if email and has_name(member) else None


def roles_of(organization: VisibleOrganization, present: str) -> Iterable[tuple[str, Markup]]:
    """Return the roles that the caller may give, with their titles: ours, and those in use."""
    used = queries.select_roles(latchkey.db, organization_id=organization.id, most=_MOST_READ).roles
    words = dict.fromkeys([OWNER, ADMIN, MEMBER, present, *used])
    return [
        (word, role_title(word, begins=True)) for word in words if may_manage(organization.role, None, word)
    ]
