"""Pages on which owners and admins invite, send an invitation again, and withdraw it."""

import re
from collections.abc import Mapping, Sequence

import psycopg2
from flask import Blueprint, Response
from flask.typing import ResponseReturnValue
from markupsafe import Markup

from auth.core.addresses import InvalidAddress, canonical_typed_email
from auth.extensions.organizations import access, invitations
from auth.extensions.organizations.access import VisibleOrganization
from auth.extensions.organizations.pages import PATH, changing, form_page, roles_of, showing
from auth.extensions.organizations.pages.organization import show_organization
from auth.extensions.organizations.pages.roles import RoleForm, chosen_role
from auth.html.page import address, addresses, redirect_to_own, text
from auth.html.problems import Problem, problem_of
from auth.rules.organizations import ADMIN, MEMBER, OWNER, may_manage
from auth.web import Level, fields, guard
from auth.web.asked import current_asked
from auth.web.context import latchkey
from auth.web.errors import ApiError
from auth.web.input import canonical_id, read_form
from auth.web.limits import count
from sql import queries

blueprint = Blueprint("organization_invitations", __name__)

# Each address is an act of its own, in one request.
_MOST = 20
_SEPARATORS = re.compile(r"[\s,;]+")
# Refusals of one address. The others are sent all the same.
_OF_ADDRESS = {"already_member", "too_many_invitations", "insufficient_permissions"}
_InvitationForm = RoleForm.of(emails=fields.LongText(required=True))


@blueprint.get("/account/organizations/<slug>/invite")
@showing(Level.PROOF)
def show_invite(slug: str, problem: Problem | None = None) -> Response:
    return _invite_page(access.find_admitted(current_asked(), slug, OWNER, ADMIN), problem)


@blueprint.post("/account/organizations/<slug>/invite")
@changing("invite_member", shown=show_invite, level=Level.PROOF)
def submit_invite(slug: str) -> Response:
    """Invite the addresses of a form, each in an act of its own. What is not an address refuses the form."""
    asked, form = current_asked(), read_form(_InvitationForm)
    organization = access.find_admitted(asked, slug, OWNER, ADMIN)
    words = _words_of(form["emails"])
    if not 0 < len(words) <= _MOST:
        # Thousands of addresses in letters of other scripts would take seconds to read.
        name = "too_many_emails" if words else "no_emails"
        return _refused(organization, text("members", name, n=len(words), most=_MOST))
    emails, wrong = _emails_of(words)
    if wrong:
        return _refused(
            organization, text("members", "wrong_emails", n=len(wrong), addresses=addresses(wrong))
        )
    role = chosen_role(organization, form)
    sent: list[str] = []
    unsent: dict[str, Problem] = {}
    for number, email in enumerate(emails):
        try:
            if number:
                # The decorator has counted the first.
                count("invite_member", guard.caller_on_network())
            invitations.invite(asked, organization, email, role, {})
            sent.append(email)
        except (ApiError, psycopg2.Error) as error:
            refusal = problem_of(error)
            if refusal.error_code in _OF_ADDRESS:
                unsent[email] = refusal
                continue
            if not sent:
                raise
            # The next ones would meet the same: a limit, a session that has ended, a database that is down.
            unsent |= dict.fromkeys(emails[number:], refusal)
            break
    if not unsent:
        done = "member_invited" if len(sent) == 1 else "members_invited"
        return redirect_to_own(f"{PATH}/{slug}#invitations", done)
    first = next(iter(unsent.values()))
    problem = Problem(text("members", "unsent", n=len(unsent)), "emails", first.status, {}, first.error_code)
    return _invite_page(organization, problem, sent, unsent, status=problem.status)


def _invite_page(
    organization: VisibleOrganization,
    problem: Problem | None,
    sent: Sequence[str] = (),
    unsent: Mapping[str, Problem] | None = None,
    *,
    status: int = 200,
) -> Response:
    """Show the form; after one with several addresses also which were `sent`, and why others were not."""
    unsent = unsent or {}
    refusals = [
        {
            "email": address(email),
            "text": refusal.text,
            "member_id": _managed_id(organization, email) if refusal.error_code == "already_member" else None,
        }
        for email, refusal in unsent.items()
    ]
    roles = roles_of(organization, MEMBER)
    values = {"roles": roles, "role": MEMBER, "most": _MOST, "sent": addresses(sent), "refusals": refusals}
    response = form_page("invite", organization, problem, **values, emails="\n".join(unsent))
    response.status_code = status
    return response


def show_after_refusal(slug: str, invitation_id: str, problem: Problem) -> ResponseReturnValue:
    return show_organization(slug, problem)


@blueprint.post("/account/organizations/<slug>/invitations/<invitation_id>/again")
@changing("invite_member", shown=show_after_refusal, level=Level.PROOF)
def submit_again(slug: str, invitation_id: str) -> Response:
    """Invite an address again, in the same role.

    The notice does not say whether a mail is sent: beyond the address's window, that would tell what other
    organizations have sent to it.
    """
    asked, id = current_asked(), canonical_id(invitation_id, "invitation_not_found")
    organization = access.find_admitted(asked, slug, OWNER, ADMIN)
    invitation = invitations.open_invitation(asked, organization.id, id)
    invitations.invite(asked, organization, invitation.email, invitation.role, {})
    return redirect_to_own(f"{PATH}/{slug}#invitations", "invitation_renewed")


@blueprint.post("/account/organizations/<slug>/invitations/<invitation_id>/withdraw")
@changing("withdraw_invitation", shown=show_after_refusal, level=Level.AAL2)
def submit_withdrawal(slug: str, invitation_id: str) -> Response:
    asked, id = current_asked(), canonical_id(invitation_id, "invitation_not_found")
    invitations.withdraw(asked, access.find(asked, slug), id)
    return redirect_to_own(f"{PATH}/{slug}#invitations", "invitation_withdrawn")


def _words_of(typed: str) -> list[str]:
    """Return the words of a field, each once, whatever its case."""
    words: dict[str, str] = {}
    for word in filter(None, _SEPARATORS.split(typed)):
        words.setdefault(word.lower(), word)
    return [*words.values()]


def _emails_of(words: Sequence[str]) -> tuple[list[str], list[str]]:
    """Return the addresses among the words of a field, each once, and what is none."""
    emails, wrong = {}, {}
    for word in words:
        try:
            emails[canonical_typed_email(word)] = True
        except InvalidAddress:
            wrong[word] = True
    return [*emails], [*wrong]


def _refused(organization: VisibleOrganization, message: Markup) -> Response:
    """Show the form again with a message about its addresses."""
    problem = Problem(message, "emails", 400, {}, "validation_failed")
    return _invite_page(organization, problem, status=problem.status)


def _managed_id(organization: VisibleOrganization, email: str) -> str | None:
    """Return the id of the member who has proved an address, None for one whom the caller may not change."""
    row = queries.select_invited_address(latchkey.db, organization_id=organization.id, email=email)
    return row.member_id if may_manage(organization.role, row.member_role, row.member_role) else None
