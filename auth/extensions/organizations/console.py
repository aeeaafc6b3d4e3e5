"""Organizations in the console: the list, the page of each, and a section of a user's page."""

import json
from dataclasses import replace
from functools import partial
from types import SimpleNamespace
from typing import Any

from flask import Blueprint, Response, request

from auth.core.net.redirects import with_query
from auth.core.text.labels import counted, quoted
from auth.extensions.organizations import access, invitations, lifecycle, lists, members, sign_in, states
from auth.extensions.organizations.routes import Role
from auth.flows.history.entries import entries_of_organization
from auth.html.admin import entries
from auth.html.admin.access import administrator
from auth.html.admin.actions import Action, Subject, notice_of, serve
from auth.html.admin.console_page import MOST, console_page
from auth.html.page import redirect_to_own
from auth.rules.organizations import ADMIN, MEMBER, OWNER
from auth.web import fields
from auth.web.asked import Asked, current_asked
from auth.web.context import latchkey
from auth.web.errors import found
from auth.web.input import canonical_id, check, read_query
from auth.web.schemas import Input, bounds
from sql import queries

blueprint = Blueprint("organizations", __name__)

_PATH = "console/organizations"
# Entries of the audit log on the page of an organization.
_ENTRIES = 10
_ListQuery = Input.of(search=fields.TypedText(load_default=""), page=fields.PageNumber())
_NewForm = Input.of(
    name=fields.TypedText(load_default=""),
    slug=fields.TypedText(load_default=""),
    owner=fields.TypedText(load_default=""),
)
_ChangeForm = Input.of(name=fields.TypedText(load_default=""), slug=fields.TypedText(load_default=""))
_LimitForm = Input.of(max_age=fields.TypedText(load_default=""))
_Limit = Input.of(max_age=fields.TypedSessionAge(required=True))
_RoleForm = Input.of(role=fields.TypedText(load_default=""))
_AddForm = _RoleForm.of(email=fields.TypedEmail(required=True))
_Change = Input.of(name=fields.OrganizationName(required=True), slug=fields.Slug(required=True))
_New = Input.of(name=fields.OrganizationName(required=True), slug=fields.Slug(), owner=fields.TypedEmail())


def memberships_of(user_id: str) -> list[dict[str, Any]]:
    return json.loads(queries.list_memberships_of_user(latchkey.db, user_id=user_id).memberships)


@blueprint.get("/console/organizations")
@administrator
def show_organizations() -> Response:
    """Show the organizations, newest first."""
    query = read_query(_ListQuery)
    place = bounds({"page": query["page"], "per_page": MOST})
    row = lists.organizations(latchkey.db, q=query["search"], **place)
    return console_page(
        "organizations.html",
        rows=json.loads(row.organizations),
        most_members=lists.MOST_MEMBERS,
        total=row.total,
        **_paging(query["page"], row.total),
        notice=notice_of(_MAKING | _ACTS),
    )


@blueprint.get("/console/organizations/<organization_id>")
@administrator
def show_organization(organization_id: str) -> Response:
    asked, subject, number = current_asked(), _found(organization_id), read_query(_ListQuery)["page"]
    id, place = subject.row.id, bounds({"page": number, "per_page": MOST})
    listed = lists.members(latchkey.db, id, q=None, with_addresses=True, **place)
    return console_page(
        "organization.html",
        organization=subject.row,
        most_members=lists.MOST_MEMBERS,
        members=json.loads(listed.members),
        total=listed.total,
        invitations=json.loads(queries.list_invitations(latchkey.db, organization_id=id).invitations),
        acts=_ACTS,
        domains=[
            each | {"state": states.of_domain(each)}
            for each in json.loads(queries.list_domains(latchkey.db, organization_id=id).domains)
        ],
        providers=[
            each | {"state": states.of_provider(each)}
            for each in sign_in.listed(asked, access.find(asked, id))
        ],
        requirement=states.of_requirement(subject.row.requires),
        entries_of_log=entries.for_page(
            entries_of_organization(asked.db, id, _ENTRIES), is_whole=False, organization=id
        ),
        possible=[
            "invite",
            "add",
            "change",
            "lift" if subject.row.requires["aal"] == "aal2" else "require",
            *(["lift_sign_in"] if "providers" in subject.row.requires else []),
            "limit",
            "end",
        ],
        **_paging(number, listed.total),
        notice=notice_of(_MAKING | _ACTS | _MEMBER_ACTS | _INVITATION_ACTS),
    )


def _paging(number: int, total: int) -> dict[str, Any]:
    """Return the URLs of the first and the next page of a list."""
    here, searched = request.path.rpartition("/")[2], request.args.get("search")
    kept = {"search": searched} if searched else {}
    following = with_query(here, kept | {"page": str(number + 1)}) if total > MOST * number else None
    first = (with_query(here, kept) if kept else here) if number > 1 else None
    return {"first": first, "next": following}


def _found(organization_id: str) -> Subject:
    id = canonical_id(organization_id, "organization_not_found")
    row = access.find_row(current_asked(), id)
    used = queries.select_roles(latchkey.db, organization_id=id, most=lists.MOST_MEMBERS).roles
    counts = queries.count_members(latchkey.db, organization_id=id, most=lists.MOST_MEMBERS)
    organization = SimpleNamespace(
        **json.loads(row.organization_object),
        app_metadata=row.app_metadata,
        members=counts.members,
        without_factor=counts.without_factor,
        roles=dict.fromkeys([OWNER, ADMIN, MEMBER, *used]),
    )
    return Subject(row.name, f"{_PATH}/{row.id}", organization)


def _effect_of_requirement(number: int, without_factor: int) -> str:
    """Say who loses access. Only the first `lists.MOST_MEMBERS` members are counted."""
    if number == lists.MOST_MEMBERS:
        return (
            f"Takes the access of members without a second factor, {without_factor:,} of the first"
            f" {number:,}, until they add one and sign in with it."
        )
    if without_factor:
        return (
            f"Takes the access of {counted(without_factor, 'member')} without a second factor,"
            " until they add one and sign in with it."
        )
    return "All members have a second factor. They lose access without it."


def _member(organization_id: str, user_id: str) -> Subject:
    subject, id = _found(organization_id), canonical_id(user_id, "member.user_not_found")
    row = queries.select_member_of(latchkey.db, organization_id=subject.row.id, user_id=id)
    member = found(row, "member.user_not_found")
    subject.row.member, subject.row.who = member, member.email or member.name or id
    return subject


def _invitation(organization_id: str, invitation_id: str) -> Subject:
    subject, id = _found(organization_id), canonical_id(invitation_id, "invitation_not_found")
    return replace(subject, row=invitations.open_invitation(current_asked(), subject.row.id, id))


def _create(asked: Asked, _subject: Subject, body: dict[str, Any]) -> Response:
    if email := body.pop("owner", None):
        body["owner"] = _user_with(email)
    made = json.loads(lifecycle.create(asked, body))
    return redirect_to_own(f"{_PATH}/{made['id']}", "new")


def _add(asked: Asked, subject: Subject, form: dict[str, Any]) -> None:
    organization = access.find(asked, subject.row.id)
    members.set_role(asked, organization, _user_with(form["email"]), form["role"], {})


def _with_role(_subject: Subject, form: dict[str, Any]) -> dict[str, Any]:
    return form | check(Role, {"role": form["role"]})


def _user_with(email: str) -> str:
    user = queries.select_summary(latchkey.db, id=None, email=email, phone=None)
    return found(user, "user_not_found").id


def _change(asked: Asked, subject: Subject, body: dict[str, Any]) -> None:
    lifecycle.change(asked, access.find(asked, subject.row.id), body)


def _change_requirement(asked: Asked, subject: Subject, demand: dict[str, Any]) -> None:
    _change(asked, subject, {"requires": demand})


def _require(**demand: object) -> Any:
    return lambda asked, subject, _form: _change_requirement(asked, subject, demand)


_act = partial(Action, needs_factor=True)
_MAKING = {
    "new": _act(
        title="Create an organization",
        effects=lambda _subject: ["Creates 1 organization. Its owner invites the members."],
        undo="You can end it at any time.",
        do=_create,
        done="Organization created.",
        form=_NewForm,
        check=lambda _subject, form: check(_New, {name: value for name, value in form.items() if value}),
        template="act_organization.html",
    ),
}
_ACTS = {
    "invite": _act(
        title="Invite a member",
        effects=lambda _subject: ["Sends 1 email, whose recipient may join for seven days."],
        undo="You can withdraw the invitation until the recipient joins.",
        do=lambda asked, subject, form: invitations.invite(
            asked, access.find(asked, subject.row.id), form["email"], form["role"], {}
        ),
        done="Invitation sent.",
        form=_AddForm,
        check=_with_role,
        template="act_member.html",
    ),
    "add": _act(
        title="Add a member",
        effects=lambda _subject: ["Adds 1 user, who is not asked, or changes the role of a member."],
        undo="You can remove the member at any time.",
        do=_add,
        done="Member added.",
        form=_AddForm,
        check=_with_role,
        template="act_member.html",
    ),
    "change": _act(
        title="Change organization",
        effects=lambda subject: [
            f"Changes 1 organization with {lists.number_of_members(subject.row.members)}."
        ],
        undo="You can change it back. Links to the old short name stop working.",
        do=_change,
        done="Organization changed.",
        form=_ChangeForm,
        check=lambda _subject, form: check(_Change, form),
        template="act_organization.html",
    ),
    "require": _act(
        title="Require a second factor",
        effects=lambda subject: [_effect_of_requirement(subject.row.members, subject.row.without_factor)],
        undo="You can lift the requirement at any time.",
        do=_require(aal="aal2"),
        done="A second factor is now required.",
    ),
    "lift": _act(
        title="Lift the requirement",
        effects=lambda _subject: ["Members need no second factor."],
        undo="You can require it again.",
        do=_require(aal="aal1"),
        done="A second factor is no longer required.",
    ),
    "lift_sign_in": _act(
        title="Lift its own sign-in",
        effects=lambda _subject: ["Memberships count however members sign in."],
        undo="Its owners can require it again, in a session of their provider.",
        do=_require(own_provider=False),
        done="Its own sign-in is no longer required.",
    ),
    "limit": _act(
        title="Limit the age of sign-ins",
        effects=lambda _subject: [
            "Memberships count only in sessions whose last sign-in is not older. Nobody is signed out."
        ],
        undo="You can change it back.",
        do=_change_requirement,
        done="The age of sign-ins was changed.",
        form=_LimitForm,
        check=lambda _subject, form: check(_Limit, form),
        template="act_limit.html",
    ),
    "end": _act(
        title="End",
        effects=lambda subject: [
            f"Ends 1 organization with {lists.number_of_members(subject.row.members)}, and its invitations.",
            "Their accounts stay.",
        ],
        undo="This can’t be undone.",
        do=lambda asked, subject, _form: lifecycle.end(asked, access.find(asked, subject.row.id), {}),
        done="Organization ended.",
        then=_PATH,
        is_destructive=True,
    ),
}
_MEMBER_ACTS = {
    "role": _act(
        title="Change the role",
        effects=lambda subject: [f"Changes the role of 1 member: {quoted(subject.row.who)}."],
        undo="You can change it back. Invitations that a former admin sent stay ended.",
        do=lambda asked, subject, form: members.set_role(
            asked, access.find(asked, subject.row.id), subject.row.member.id, form["role"], {}
        ),
        done="Role changed.",
        form=_RoleForm,
        check=lambda _subject, form: check(Role, form),
        template="act_member.html",
    ),
    "remove": _act(
        title="Remove the member",
        effects=lambda subject: [
            f"Removes 1 member: {quoted(subject.row.who)}.",
            "The account stays. Applications used as a member lose access, and invitations of the member end."
            " The member is told.",
        ],
        undo="You can add the member again.",
        do=lambda asked, subject, _form: members.remove(
            asked, access.find(asked, subject.row.id), subject.row.member.id
        ),
        done="Member removed.",
        is_destructive=True,
    ),
}
_INVITATION_ACTS = {
    "withdraw": _act(
        title="Withdraw the invitation",
        effects=lambda subject: [f"Withdraws 1 invitation: {quoted(subject.row.email)}."],
        undo="You can invite the address again.",
        do=lambda asked, subject, _form: invitations.withdraw(
            asked, access.find(asked, subject.row.organization_id), subject.row.id
        ),
        done="Invitation withdrawn.",
        is_destructive=True,
    ),
}

_EMPTY = SimpleNamespace(id=None, name="", slug="")
serve(blueprint, "/console/organizations", _MAKING, lambda: Subject("Organizations", _PATH, _EMPTY))
serve(blueprint, "/console/organizations/<organization_id>", _ACTS, _found)
serve(blueprint, "/console/organizations/<organization_id>/members/<user_id>", _MEMBER_ACTS, _member)
serve(
    blueprint,
    "/console/organizations/<organization_id>/invitations/<invitation_id>",
    _INVITATION_ACTS,
    _invitation,
)
