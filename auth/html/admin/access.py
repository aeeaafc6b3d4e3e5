"""Access to the console, and the further requirements of its acts."""

import functools
from dataclasses import replace
from urllib.parse import urlencode

from flask import Response, request
from flask.typing import ResponseReturnValue

from auth.core.text import labels
from auth.flows.sign_in.reauthentication import add, proof_needed
from auth.html import browser_sessions
from auth.html.admin.console_page import console_page
from auth.html.forms import SESSION, own_form
from auth.html.missing_steps import REDIRECTED_ERRORS, to_step
from auth.html.page import redirect_to_own
from auth.html.problems import Problem, problem_of
from auth.web import Level, View, cookies, g, guard, limits
from auth.web.asked import current_asked
from auth.web.context import latchkey
from auth.web.error_handlers import as_api_error
from auth.web.errors import ApiError

# Fields whose labels differ from their names.
_FIELDS = {
    "url": "URL",
    "factor_code": "The code",
    "q": "The search",
    "ids": "The selection",
    "client_name": "The name",
    "client_uri": "The website",
    "logo_uri": "The logo",
    "redirect_uris": "Redirect URIs",
    "post_logout_redirect_uris": "Redirect URIs after sign-out",
    "allowed_roles": "Roles",
    "token_lifetime": "The lifetime",
}
# The console shows these instead of the messages for programs, which include the email validator's reasons.
_MESSAGES = {
    "email.validation_failed": "Enter an email address, such as ada@example.com.",
    "email_exists": "Another user has this email address.",
    "phone_exists": "Another user has this phone number.",
    "phone.validation_failed": "Enter a phone number with its country code, such as +491701234567.",
}


def _admit_administrator() -> None:
    """Accept browsers in which an administrator has signed in with the second step."""
    g.level = Level.AAL2 if latchkey.settings.is_local else Level.SECOND_FACTOR
    session = browser_sessions.resume()
    if session is None:
        raise ApiError("session_not_found")
    g.note(user_id=session.user_id)
    if not session.is_admin:
        raise ApiError("not_admin")
    g.administrator = session
    if session.lacks_level:
        raise ApiError("insufficient_aal")


administrator = guard.administrative("administrator", Level.AAL2, _admit_administrator)


def require_proof() -> None:
    """Refuse unless the administrator has given a proof in the last 15 minutes."""
    if not g.administrator.has_proof:
        raise ApiError("reauthentication_needed")


def changing(view: View) -> View:
    """Guard and limit a view that changes something. `administrator` goes outside."""

    @functools.wraps(view)
    def proved(*args: object, **kwargs: object) -> ResponseReturnValue:
        limits.count("administer", f"{request.endpoint} {guard.caller_on_network()}")
        require_proof()
        return view(*args, **kwargs)

    return own_form(proved)


def explain(exception: Exception) -> Problem:
    """Return the problem to show for an exception, with the console's own message if there is one."""
    error, problem = as_api_error(exception), problem_of(exception)
    field = error.values.get("field") or (error.details or "").partition(":")[0] or problem.field
    return replace(problem, text=_message_of(error), field=field)


def _message_of(error: ApiError) -> str:
    """Return the message, or a sentence about each wrong field: `Ban duration must be …`."""
    if rule := error.values.get("rule"):
        return labels.label("wrong_fields", rule, **error.values)
    if error.error_code == "webauthn_verification_failed" and error.details:
        return f"{error.msg}: {error.details.partition(': ')[2]}."
    if not error.details or error.key not in ("validation_failed", "mfa_verification_failed"):
        return _MESSAGES.get(error.key, error.msg)
    sentences = []
    for detail in error.details.split("; "):
        field, _, requirement = detail.partition(": ")
        name = _FIELDS.get(field) or labels.spaced(field).capitalize()
        has_label = field in labels.names("wrong_values")
        sentences.append(labels.label("wrong_values", field) if has_label else f"{name} {requirement}.")
    return " ".join(sentences)


def show_error(exception: Exception) -> Response:
    """Redirect to the missing step, or show the error."""
    error = as_api_error(exception)
    if error.error_code == "insufficient_aal" and not g.administrator.has_factor:
        return needs_factor()
    if error.error_code in REDIRECTED_ERRORS:
        return _to_step(error.key)
    problem = explain(error)
    response = console_page("error.html", section=None, status=problem.status, problem=problem)
    response.headers.extend(problem.headers)
    return response


def needs_factor() -> Response:
    """Send an administrator without a second factor to enrol one, and back."""
    settings = latchkey.settings
    offers = {"may_enrol": settings.mfa_enabled, "may_add_passkeys": settings.offers_passkeys}
    # Enrolment also asks for a proof, but does not know the page to return to.
    if any(offers.values()) and (key := proof_needed(current_asked(), add("factor"), level=Level.SESSION)):
        return _to_step(key)
    return console_page("enrol.html", section=None, status=403, **offers, way_back=_way_back())


def _way_back() -> dict[str, str]:
    # The confirmation of an action has the path of its form.
    path = request.full_path if request.method == "GET" else request.path
    return {"next": path[1:].removesuffix("?")}


def _to_step(key: str) -> Response:
    query = _way_back()
    if not cookies.read(SESSION):
        return redirect_to_own(f"sign-in?{urlencode(query)}")
    return to_step(key, query)
