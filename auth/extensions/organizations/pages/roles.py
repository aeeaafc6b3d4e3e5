"""The choice of a role on a form: one that is in use, or another word."""

from collections.abc import Mapping

from auth.extensions.organizations.access import VisibleOrganization
from auth.extensions.organizations.routes import Role
from auth.rules.organizations import may_manage
from auth.web import fields
from auth.web.errors import ApiError
from auth.web.input import check
from auth.web.schemas import Input

# The choice *Another role…* has an empty value.
RoleForm = Input.of(role=fields.Text(required=True), other_role=fields.TypedText(load_default=""))
_OtherRole = Input.of(other_role=fields.MemberRole(required=True))


def chosen_role(organization: VisibleOrganization, form: Mapping[str, str]) -> str:
    """Return the role of a form. Refuse one that is no word, or that the caller may not give to anybody."""
    if form["role"]:
        role: str = check(Role, {"role": form["role"]})["role"]
    else:
        role = check(_OtherRole, {"other_role": form["other_role"]})["other_role"]
    if not may_manage(organization.role, None, role):
        raise ApiError("organization.insufficient_permissions")
    return role
