"""The second step of a sign-in, and the authenticator apps and recovery codes of the account."""

from datetime import date
from typing import Any

from flask import Blueprint, Response, request
from markupsafe import Markup

from auth.core.factors.recovery_codes import grouped
from auth.core.net.redirects import with_query
from auth.extensions.pages.passkeys import own_passkeys
from auth.flows.account import removal
from auth.flows.factors import factors, recovery_codes
from auth.flows.passkeys import assertions
from auth.flows.passkeys.passkeys import rename as rename_passkey
from auth.flows.sign_in.reauthentication import add, has_proof, require
from auth.html import browser_sessions, form_schemas
from auth.html.browser_sessions import signed_in
from auth.html.challenges import (
    factors_without_challenge,
    may_challenge,
    own_factors,
    sent_credential,
    verify_key,
)
from auth.html.destinations import destination, form_page
from auth.html.membership_steps import organization_asking_again
from auth.html.page import date_alone, page, redirect_to_own, text, waiting_behind
from auth.html.problems import Problem, form, problem_of_redirect
from auth.html.redirects import redirect_onward
from auth.rules.levels import must_have_step
from auth.web import Level, audited, g, guard
from auth.web.asked import Asked, current_asked
from auth.web.context import latchkey
from auth.web.errors import ApiError, found
from auth.web.input import canonical_id, read_form
from sql import queries

blueprint = Blueprint("second_step", __name__)


@blueprint.get("/second-step")
@signed_in(Level.SESSION)
def show_second_step(problem: Problem | None = None) -> Response:
    """Ask for a code of the authenticator app, a passkey or a recovery code."""
    asked = current_asked()
    if not _asks_for_step(asked):
        # A GET request must not continue: another site may have started it. A form sent twice gets no cookie:
        # only the browser that sent the right code does.
        return redirect_to_own(destination().path("sign-in"))
    ways = own_ways()
    if not ways.apps and not ways.keys and not ways.has_passkey:
        # AUTH_MFA_REQUIRED requires a factor, but the user has none yet.
        return redirect_to_own(destination().path("account/two-step"))
    to, is_again = destination(), g.caller.aal == "aal2"
    # A thief may have added all factors: a recovery by email removes them.
    person = asked.live_caller()
    is_required = must_have_step(person, latchkey.policy)
    may_skip = to and not to.next and not (ways.apps or ways.keys or is_required)
    offers: dict[str, Any] = {
        "to": to,
        "may_remove": not is_again and removal.may_remove_recent(asked, person),
        "may_recover": not is_again and removal.has_recent_factor(asked, person.id),
        "may_skip": not is_again and may_skip,
    }
    offers["organization"] = organization_asking_again(asked, to.next or "") if is_again else None
    offers |= own_factors(ways) if may_challenge() else factors_without_challenge(ways)
    return form_page("second_step.html", "second-step", problem=problem, is_again=is_again, **offers)


def _asks_for_step(asked: Asked) -> bool:
    """Whether the session lacks the step, or it is too old for a change or an application."""
    person = asked.live_caller()
    if person.aal != "aal2" or (person.oldest_factor_at is not None and not has_proof(asked, person)):
        return True
    waiting = waiting_behind(destination().next or "")
    return waiting is not None and not waiting.is_fresh


@blueprint.post("/second-step")
@form("verify_factor", shown=show_second_step, level=Level.SESSION)
@audited("factor_refused", sign_in="factor")
def submit_second_step() -> Response:
    session = factors.verify_code(current_asked(), read_form(form_schemas.CodeForm)["code"])
    browser_sessions.keep(session.cookie, session.aal)
    return redirect_onward(destination())


@blueprint.post("/second-step/recovery")
@form("verify_recovery_code", shown=show_second_step, level=Level.SESSION)
@audited("factor_refused", sign_in="recovery_code")
def submit_recovery_second_step() -> Response:
    session = recovery_codes.verify(current_asked(), read_form(form_schemas.RecoveryForm)["recovery_code"])
    browser_sessions.keep(session.cookie, session.aal)
    return redirect_onward(destination())


@blueprint.post("/second-step/passkey")
@form("give_proof", shown=show_second_step, level=Level.SESSION)
@audited("factor_refused", sign_in="factor")
def submit_passkey_second_step() -> Response:
    asked = current_asked()
    _, session = assertions.prove(asked, sent_credential(), owner=assertions.own_session(asked))
    browser_sessions.keep(session.cookie, session.aal)
    return redirect_onward(destination())


@blueprint.post("/second-step/key")
@form("verify_factor", shown=show_second_step, level=Level.SESSION)
@audited("factor_refused", sign_in="factor")
def submit_key_second_step() -> Response:
    session = verify_key()
    browser_sessions.keep(session.cookie, session.aal)
    return redirect_onward(destination())


@blueprint.post("/second-step/skip")
@form("skip_second_step", level=Level.AAL1)
def skip_second_step() -> Response:
    """Continue to the application without the passkey. Sensitive changes still ask for it."""
    return redirect_onward(destination(), level=Level.AAL1)


def _page(template: str, **values: Any) -> Response:
    """Render a page that remembers the application whose sign-in waits for the required second factor."""
    return page(template, script=True, to=destination(), **values)


@blueprint.get("/account/two-step")
@signed_in(Level.SESSION)
def show_two_step(problem: Problem | None = None) -> Response:
    """Name a new authenticator app."""
    require(current_asked(), add("factor"))
    session = browser_sessions.resume(Level.AAL2)
    return _page(
        "two_step.html",
        here="/account/two-step",
        problem=problem or problem_of_redirect(),
        is_required=session is not None and session.lacks_level,
        number=sum(step["type"] == "totp" for step in own_steps()) + 1,
        **effects_of_factor(),
    )


@blueprint.post("/account/two-step")
@form("enrol_factor", shown=show_two_step, level=Level.ENROL)
def submit_two_step() -> Response:
    """Show the secret of a new app once, as a QR code and as text: a copied cookie cannot read it later."""
    asked = current_asked()
    require(asked, add("factor"))
    name = read_form(form_schemas.AppNameForm)["name"]
    factor = factors.enrol(asked, {"factor_type": "totp", "friendly_name": name})
    secret = factor["totp"]["secret"]
    in_groups = " ".join(secret[place : place + 4] for place in range(0, len(secret), 4))
    # We generated the SVG.
    qr_code = Markup(factor["totp"]["qr_code"])  # noqa: S704
    return _first_code_page(factor["id"], totp=factor["totp"] | {"qr_code": qr_code, "secret": in_groups})


@blueprint.get("/account/two-step/verify")
@signed_in(Level.SESSION)
def show_first_code(problem: Problem | None = None) -> Response:
    """Ask again for the first code of an app, or for another app if this one has expired."""
    asked, factor_id = current_asked(), request.values.get("factor_id", "")
    asked.live_caller()
    try:
        factors.require_begun(asked, canonical_id(factor_id, "mfa_factor_not_found"))
    except ApiError as error:
        if error.error_code != "mfa_factor_not_found":
            raise
        return redirect_to_own(destination().path("account/two-step"), error_code=error.error_code)
    return _first_code_page(factor_id, problem=problem)


def _first_code_page(
    factor_id: str, *, totp: dict[str, Any] | None = None, problem: Problem | None = None
) -> Response:
    here = "/" + with_query(destination().path("account/two-step/verify"), {"factor_id": factor_id})
    return _page("two_step_code.html", here=here, factor_id=factor_id, problem=problem, totp=totp)


@blueprint.post("/account/two-step/verify")
@form("verify_factor", shown=show_first_code, level=Level.SESSION)
@audited("factor_refused")
def submit_first_code() -> Response:
    """Add a new app with its first code. A user without recovery codes sees new ones."""
    values = read_form(form_schemas.FirstCodeForm)
    factor_id = canonical_id(values["factor_id"], "mfa_factor_not_found")
    asked = current_asked()
    # A new app has its own notice, so the codes get none.
    notice = "recovery_codes_created" if factors.is_verified(asked, factor_id) else None
    challenge_id = factors.challenge(asked, factor_id)["id"]
    session = factors.verify_totp(asked, factor_id, challenge_id, values["code"], hook=None)
    browser_sessions.keep(session.cookie, session.aal)
    has_codes = recovery_codes.status(current_asked()).remaining
    return redirect_onward(destination(), done="factor_added") if has_codes else _new_codes(notice)


@blueprint.get("/account/recovery-codes")
@signed_in(Level.SECOND_FACTOR)
def show_recovery_codes() -> Response:
    require(current_asked(), add("recovery_codes"))
    remaining = recovery_codes.status(current_asked()).remaining
    return page("account_codes.html", script=True, here="/account/recovery-codes", remaining=remaining)


@blueprint.post("/account/recovery-codes")
@form("create_recovery_codes", level=Level.SECOND_FACTOR)
def replace_recovery_codes() -> Response:
    """Replace the recovery codes, and show the new ones once."""
    require(current_asked(), add("recovery_codes"))
    return _new_codes()


def _new_codes(notice: str | None = "recovery_codes_created") -> Response:
    asked = current_asked()
    created = recovery_codes.create(asked, {}, notice=notice)
    codes = [grouped(code) for code in created.codes]
    person, day = asked.live_caller(), date.fromisoformat(created.created_at[:10])
    account = person.email or person.phone or person.id
    head = text("two_step", "codes_file", account=account, date=date_alone(day)).unescape()
    return _page("recovery_codes.html", here=None, codes=codes, file="\n".join((head, "", *codes, "")))


def effects_of_factor() -> dict[str, Any]:
    """Return whether a factor would be the first that sign-ins ask the caller for, which ends other access,
    and whether API keys end.
    """
    caller = {"user_id": guard.caller_id()}
    is_first = queries.count_verified_factors(latchkey.db, **caller).enrolled == 0
    return {"is_first": is_first, "has_keys": queries.list_api_keys(latchkey.db, **caller).api_keys != "[]"}


def own_ways() -> "queries.SelectSecondSteps":
    return queries.select_second_steps(latchkey.db, user_id=guard.caller_id(), added_before=None)


def own_steps() -> list[dict[str, Any]]:
    return steps_of(own_ways())


def steps_of(ways: "queries.SelectSecondSteps") -> list[dict[str, Any]]:
    """Return the caller's factors and passkeys, each with its type."""
    passkeys = own_passkeys() if ways.has_passkey or ways.has_unused_passkey else []
    rows = {"totp": ways.apps, "webauthn": ways.keys, "passkey": passkeys}
    return [{"last_used_at": None, **step, "type": type} for type, steps in rows.items() for step in steps]


@blueprint.get("/account/rename")
@signed_in(Level.AAL2)
def show_rename(problem: Problem | None = None) -> Response:
    return page("account_rename.html", script=True, here=None, problem=problem, step=_renamed_step())


@blueprint.post("/account/rename")
@form("rename", shown=show_rename, level=Level.AAL2)
@audited("change_refused")
def submit_rename() -> Response:
    step = _renamed_step()
    rename = rename_passkey if step["type"] == "passkey" else factors.rename
    rename(current_asked(), step["id"], read_form(form_schemas.NameForm)["name"])
    return redirect_to_own("account#security", "renamed")


def _renamed_step() -> dict[str, Any]:
    current_asked().live_caller()
    steps = (step for step in own_steps() if step["id"] == request.values.get("id"))
    return found(next(steps, None), "not_found")
