"""The page that an invitation's mail links to: the question, or what has become of it.

A user without a membership or an invitation reads the same for every short name.
"""

from typing import Any

from flask import Blueprint, Response
from markupsafe import Markup

from auth.extensions.organizations import access, invitations
from auth.extensions.organizations.pages import changing, role_title
from auth.extensions.organizations.pages.way_back import application_at
from auth.html import forms
from auth.html.browser_sessions import signed_in
from auth.html.destinations import destination, form_page
from auth.html.form_schemas import Decision
from auth.html.membership_steps import MembershipSteps
from auth.html.page import application, redirect_to_own, waiting_behind
from auth.html.problems import Problem
from auth.html.redirects import Destination
from auth.web import Level, g
from auth.web.asked import current_asked
from auth.web.errors import found
from auth.web.input import read_form

blueprint = Blueprint("invitation", __name__)


@blueprint.get("/organizations/<slug>/join")
@signed_in(Level.AAL2)
def show_invitation(slug: str, problem: Problem | None = None) -> Response:
    """Ask whether to join, or say why that is no question: the caller is a member, or has no invitation."""
    membership, invitation = _membership_and_invitation(slug)
    if membership and problem:
        # The other press of two has made the caller a member.
        return redirect_to_own(_path_of_invitation(slug))
    if membership:
        return _member_page(slug, membership)
    if invitation:
        role, account = role_title(invitation["role"]), current_asked().live_caller().email
        shown = {"invitation": invitation, "role": role, "account": account}
        return _invitation_page("join", slug, problem=problem, **shown)
    if forms.signed_value("done") == "declined":
        return _invitation_page("declined", slug)
    return _no_invitation_page(slug, problem)


@blueprint.post("/organizations/<slug>/join")
@changing("answer_invitation", shown=show_invitation, level=Level.AAL2)
def answer_invitation(slug: str) -> Response:
    membership, invitation = _membership_and_invitation(slug)
    if membership:
        return redirect_to_own(_path_of_invitation(slug))
    id = found(invitation, "invitation_not_found")["id"]
    if read_form(Decision)["action"] == "deny":
        invitations.decline(current_asked(), id)
        return redirect_to_own(_path_of_invitation(slug), "declined")
    invitations.accept(current_asked(), id)
    return redirect_to_own(_path_of_invitation(slug), "joined")


def _membership_and_invitation(slug: str) -> tuple[dict[str, Any] | None, dict[str, Any] | None]:
    """Return the caller's membership of an organization, or an open invitation to it."""
    memberships, open_ones = access.memberships_and_invitations(current_asked())
    membership = next((each for each in memberships if each["slug"] == slug), None)
    return membership, next((each for each in open_ones if each["organization"]["slug"] == slug), None)


def _path_of_invitation(slug: str) -> str:
    return destination().path(f"organizations/{slug}/join")


def _member_page(slug: str, membership: dict[str, Any]) -> Response:
    has_joined = forms.signed_value("done") == "joined"
    step = MembershipSteps(current_asked().live_caller()).step(membership, _path_of_invitation(slug))
    return _invitation_page("joined", slug, membership=membership, has_joined=has_joined, step=step)


def _no_invitation_page(slug: str, problem: Problem | None) -> Response:
    """Show the same page for every short name: a stranger does not learn which organizations exist."""
    caller = current_asked().live_caller()
    g.refused_because = "invitation_not_found"
    shown_problem = None if problem and problem.error_code == g.refused_because else problem
    columns = {"account": caller.email, "is_proved": caller.email_proved, "problem": shown_problem}
    return _invitation_page("no_invitation", slug, status=404, **columns)


def _invitation_page(name: str, slug: str, **values: Any) -> Response:
    """Show a page about an invitation. It continues to the destination, by default the site."""
    path, to = f"organizations/{slug}/join", destination()
    # After a sign-in with another account, the browser comes back.
    values |= {"another": Destination(next=to.path(path)), "application_name": _name_of_application(to)}
    return form_page(f"organizations/{name}.html", path, to=to.or_site(), **values)


def _name_of_application(to: Destination) -> Markup | str:
    waiting = waiting_behind(to.next) if to.next else None
    return application(waiting.name) if waiting else application_at(to.url)
