"""The page for a new password."""

from flask import Blueprint, Response, jsonify

from auth.core.passwords.policy import WeakPassword, check_strength
from auth.extensions.pages.confirm import require_proof
from auth.flows import facts
from auth.flows.account import removal
from auth.flows.account.changes import change_user
from auth.html import browser_sessions, form_schemas, forms
from auth.html.browser_sessions import signed_in
from auth.html.destinations import destination, form_page
from auth.html.page import redirect_to_own, text
from auth.html.problems import Problem, form
from auth.html.redirects import PASSWORD_REMOVED, redirect_onward
from auth.rules.proofs import is_fresh_recovery
from auth.web import Level, audited, guard
from auth.web.asked import current_asked
from auth.web.context import latchkey
from auth.web.input import read_form

blueprint = Blueprint("passwords", __name__)


@blueprint.get("/.well-known/change-password")
def change_password() -> Response:
    """Redirect password managers to the form (W3C, A Well-Known URL for Changing Passwords)."""
    return redirect_to_own("sign-in?next=new-password")


@blueprint.post("/new-password/common")
@form("check_common")
def check_common() -> Response:
    """Return whether a new password is easy to guess. It is neither stored nor logged."""
    values = read_form(form_schemas.CommonForm)
    try:
        check_strength(latchkey.settings, values["password"], [values.get("email", "").lower()], None)
    except WeakPassword as error:
        return jsonify(problem=error.guessed and text("errors", f"weak_{error.guessed}"))
    return jsonify(problem=None)


@blueprint.get("/new-password", defaults={"kind": "new-password"})
@blueprint.get("/join", defaults={"kind": "join"})
@signed_in(Level.AAL2)
def show_new_password(kind: str, problem: Problem | None = None) -> Response:
    """Ask for a new password, or, as /join, for the first one of an invited user."""
    person = current_asked().live_caller()
    session = facts.own_session_of(person)
    is_recovery = session is not None and is_fresh_recovery(session, person.now)
    if person.oldest_factor_at is not None or not is_recovery:
        require_proof()
    is_first, to = kind == "join", destination()
    if is_first and person.password_hash:
        return redirect_to_own(to.path("new-password"))
    # If the next page is the account, it lists the changes.
    changes = removal.list_recent(latchkey.db, guard.caller_id()) if to.then and not is_first else []
    return form_page(
        "new_password.html",
        kind,
        problem=problem,
        kind=kind,
        is_first=is_first,
        is_removed=forms.signed_value("done") == PASSWORD_REMOVED,
        has_password=person.password_hash is not None,
        user=browser_sessions.resume(),
        changes=len(changes),
    )


@blueprint.post("/new-password", defaults={"kind": "new-password"})
@blueprint.post("/join", defaults={"kind": "join"})
@form("change_user", shown=show_new_password, level=Level.AAL2, is_queued=True)
@audited("change_refused")
def submit_new_password(kind: str) -> Response:
    change_user(current_asked(), read_form(form_schemas.PasswordForm))
    return redirect_onward(destination(), done="first_password" if kind == "join" else "password")
