"""Forms and their errors: a sentence next to a field, or a page; the envelope for programs."""

import functools
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any, cast
from urllib.parse import quote

import psycopg2
from flask import Response, current_app, request
from flask.typing import ResponseReturnValue
from markupsafe import Markup
from werkzeug.exceptions import HTTPException

from auth.core.addresses import looks_like_phone
from auth.core.passwords.hashing import TooManyWaiting
from auth.core.passwords.policy import WeakPassword
from auth.core.text.moments import wait
from auth.core.tokens import one_time
from auth.html import forms
from auth.html.browser_sessions import signed_in
from auth.html.forms import own_form
from auth.html.membership_steps import MembershipStep, MembershipSteps
from auth.html.missing_steps import REDIRECTED_ERRORS, redirect_to_missing
from auth.html.page import address, application, chosen_language, has_text, page, redirect_to_own, text
from auth.web import Level, View, callers, cookies, g, guard
from auth.web.application import FORM
from auth.web.context import latchkey
from auth.web.error_handlers import as_api_error
from auth.web.errors import ApiError, envelope
from auth.web.limits import limited
from sql import queries

_FIELDS = {
    "invalid_credentials": "password",
    "weak_password": "password",
    "same_password": "password",
    "current_password_invalid": "current_password",
    "reauthentication_not_valid": "nonce",
    "otp_expired": "code",
    "device.otp_expired": "user_code",
    "mfa_verification_failed": "code",
    "email_exists": "email",
    "user_already_exists": "email",
    "phone_exists": "phone",
    "slug_exists": "slug",
    "already_member": "email",
    "sso_provider_not_found": "email",
}
# The texts of errors in a context, by their keys.
_TEXTS_BY_KEY = {
    "bad_json": "form_invalid",
    "unsupported_media_type": "form_invalid",
    "form.unsupported_media_type": "form_invalid",
    "request_entity_too_large": "too_large",
    "hook_failed": "service_unavailable",
    "country.validation_failed": "country_invalid",
    "factor.over_request_rate_limit": "factor_rate_limit",
    "mfa_recovery_codes_locked": "factor_rate_limit",
    "device.otp_expired": "user_code_invalid",
    "unknown.webauthn_verification_failed": "passkey_unknown",
    "removed.webauthn_verification_failed": "passkey_unknown",
    "form.insufficient_permissions": "form_changed",
    "cookie.insufficient_permissions": "no_cookie",
    "cookie.oauth_authorization_not_found": "oauth_no_cookie",
    "conflict": "domain_taken",
    "admin.user_sso_conflict": "administrator_sso_conflict",
    "pressed.user_sso_conflict": "other_user_sso_conflict",
    "absent.domain_not_proved": "record_absent",
    "gone.domain_not_proved": "record_gone",
    "other.domain_not_proved": "record_other",
    "misplaced.domain_not_proved": "record_misplaced",
    "unanswered.domain_not_proved": "record_unanswered",
    "issuer.validation_failed": "issuer_elsewhere",
    "tenant.validation_failed": "tenant_missing",
    "redirect_uri.validation_failed": "redirect_uri_taken",
    "organization.insufficient_permissions": "role_insufficient",
    "founder.insufficient_permissions": "role_insufficient",
    "owner.sso_provider_disabled": "own_provider_disabled",
    "invited.over_email_send_rate_limit": "invitation_rate_limit",
    "invitations.over_email_send_rate_limit": "invitation_rate_limit",
}
# Values of errors that people compare with what they have set.
_TECHNICAL = {"name", "place", "issuer"}
_FORM_TYPES = {FORM, "multipart/form-data"}
_OPENING_METHODS = ("GET", "HEAD")

# Constraints raise some of these. Without the database, the form is shown again with its values.
_REFUSALS = (ApiError, WeakPassword, TooManyWaiting, psycopg2.Error)


def asks_for_page() -> bool:
    """Whether the client is a browser, not a program."""
    return request.accept_mimetypes.best_match(["application/json", "text/html"]) == "text/html"


# Blueprints whose pages people open, perhaps with a trailing slash.
_PAGE_BLUEPRINTS = ("pages.", "console.", "docs.")


@dataclass(frozen=True)
class Problem:
    text: str
    field: str | None
    status: int
    headers: Mapping[str, str]
    error_code: str
    # The key of the error in `ERRORS`: the error code, after its context if it has one.
    key: str = ""
    # The developer reads this while AUTH_BASE_URL is this machine.
    reason: str | None = None


def shows(shown: View, explain: Callable[[Exception], Problem]) -> Callable[[View], View]:
    """Return a decorator for form views that shows `shown(problem=…)` for a refused form."""

    def decorate(view: View) -> View:
        @functools.wraps(view)
        def answered(**kwargs: object) -> ResponseReturnValue:
            try:
                return view(**kwargs)
            except _REFUSALS as error:
                problem = explain(error) if asks_for_page() else None
                if problem is None or problem.error_code in REDIRECTED_ERRORS:
                    raise
            response = cast(Response, shown(problem=problem, **kwargs))
            if "Location" not in response.headers:
                response.status_code = problem.status
            response.headers.extend(problem.headers)
            return response

        return answered

    return decorate


def form(
    *operations: str,
    shown: View | None = None,
    level: Level | None = None,
    key: Callable[[], str] | None = None,
    limit_text: str = "over_request_rate_limit",
    is_queued: bool = False,
) -> Callable[[View], View]:
    """Return a decorator for the view that a form is sent to.

    `shown(problem=…)` shows its page again if the form is refused; beyond the limit, the text of the problem
    is `limit_text`. With a `level`, the form is for signed-in users, and the windows of the operations count
    each user on each network. To share the windows of strangers, put `signed_in` above this decorator
    instead. Otherwise they count by `key`, or each network. Set `is_queued` if the view hashes a password.
    """
    limit_key = key or (guard.caller_on_network if level else None)

    def decorate(view: View) -> View:
        for operation in reversed(operations):
            is_first = operation == operations[0]
            view = limited(operation, key=limit_key, is_queued=is_queued and is_first)(view)
        view = own_form(view)
        if shown:
            view = shows(shown, functools.partial(problem_of, limit_text=limit_text))(view)
        return signed_in(level)(view) if level else view

    return decorate


def problem_of_redirect(wait: object = None) -> Mapping[str, Any] | None:
    """Return the problem that a redirect to this page carries, if any. Texts of limits contain a `wait`."""
    name = forms.signed_value("error_code")
    if not name:
        return None
    if cause := _cause_of_refusal():
        return {"text": cause, "reason": _for_developer(forms.signed_value("reason"))}
    if name == "otp_expired":
        return {"text": text("welcome", name)}
    if name.endswith("_send_rate_limit") and not wait:
        return None
    is_limit = name.endswith("_rate_limit") and not wait
    name = _TEXTS_BY_KEY.get(name, name)
    text_name = name if has_text("errors", name) and not is_limit else "other"
    message = text("errors", text_name, request_id=_id_line(g.request_id), wait=wait)
    return {"text": message, "reason": _for_developer(forms.signed_value("reason"))}


def _cause_of_refusal() -> Markup | None:
    """Return what a redirect says about a sign-in that a customer's provider has spoilt, if it does."""
    name = f"{forms.signed_value('reader')}_{forms.signed_value('cause')}"
    if not has_text("single_sign_on", name):
        return None
    named, by = address(forms.signed_value("named")), application(forms.signed_value("by"))
    return text("single_sign_on", name, named=named, by=by)


def why_ended() -> Mapping[str, Any] | None:
    """Return the message of a sign-in page about the browser's session, if the user or an act ended it."""
    token_hash = one_time.hash_token(cookies.read(forms.SESSION))
    row = token_hash and queries.select_end_of_browser_session(latchkey.db, token_hash=token_hash)
    reason = row.reason if row else None
    return {"text": text("ended", reason)} if reason and has_text("ended", reason) else None


def _for_developer(reason: str | None) -> str | None:
    return reason[:300] if reason and latchkey.settings.is_local else None


def problem_of(exception: Exception, *, limit_text: str = "over_request_rate_limit") -> Problem:
    """Return the problem to show for an exception, and record the refusal in the audit log."""
    error = as_api_error(exception)
    g.refused_because = error.reason
    field = _FIELDS.get(error.key, _FIELDS.get(error.error_code))
    if error.error_code == "validation_failed" and error.details:
        field = error.details.partition(":")[0]
    if error.error_code == "mfa_verification_failed" and "recovery_code" in request.form:
        field = "recovery_code"
    # The kinds of characters that a password needs: `a number and a symbol`.
    kinds = [text("forms", name) for name in getattr(exception, "missing", ())]
    values = {
        "wait": wait(int(error.headers.get("Retry-After", "0")), chosen_language()),
        "least": latchkey.settings.password_min_length,
        "missing": text("forms", "listed", kinds=kinds) if kinds else "",
        # The length of a name, unless the form has no such field.
        "most": error.values.get("most"),
        "request_id": _id_line(g.request_id),
    }
    values |= {name: code(error.values[name]) for name in _TECHNICAL & error.values.keys()}
    message: str = text("errors", _name_of_text(exception, error, field, limit_text), **values)
    if error.error_code == "hook_refused":
        # The page escapes the message of a hook, which is not `Markup`.
        message = error.msg
    # A 401 requires a scheme (RFC 9110, section 11.6.1), which forms do not have.
    status = 403 if error.status == 401 else error.status
    return Problem(message, field, status, error.headers, error.error_code, error.key)


def code(value: str) -> Markup:
    """Return a name or URL for texts, as it is typed elsewhere."""
    return Markup('<code translate="no">{}</code>').format(value)


def _id_line(id: str) -> Markup:
    return Markup('<code class="id">{}</code>').format(id)


def _name_of_text(exception: Exception, error: ApiError, field: str | None, limit_text: str) -> str:
    if isinstance(exception, WeakPassword):
        return f"weak_{exception.reason}"
    if error.key in _TEXTS_BY_KEY:
        return _TEXTS_BY_KEY[error.key]
    name = "recovery_code_invalid" if field == "recovery_code" else error.error_code
    if name == "validation_failed":
        name = _name_of_invalid(field)
    if name == "over_request_rate_limit":
        name = limit_text
    if looks_like_phone(request.form.get("email", "")) and has_text("errors", f"{name}_phone"):
        return f"{name}_phone"
    return name if has_text("errors", name) else "other"


def _name_of_invalid(field: str | None) -> str:
    """Return the name of the text about a parameter of an application's request, or a field of our form."""
    names = [f"parameter_{field}_invalid"] if g.route.refuses_by_page else []
    names += [f"{field}_invalid", "link_invalid" if request.method in _OPENING_METHODS else "form_invalid"]
    return next(name for name in names if has_text("errors", name))


def show_on_page(exception: Exception) -> Response:
    """Show an error of one of our pages, or redirect to the page for the missing step."""
    error = as_api_error(exception)
    if step := _step_of(error):
        g.refused_because = error.reason
        organization = error.values["organization"]
        return page("membership_step.html", status=403, here=None, organization=organization, step=step)
    if error.error_code not in REDIRECTED_ERRORS or not asks_for_page():
        return _answer(error)
    return redirect_to_missing(error)


def _step_of(error: ApiError) -> MembershipStep | None:
    """Return what a membership lacks, as the account page says it, if that is the error."""
    # Only `admit_session` of the organizations names one.
    if "organization" not in error.values or not asks_for_page():
        return None
    needs_step = error.error_code == "insufficient_aal"
    requires = {"aal": "aal2"} if needs_step else {"aal": "aal1", **error.members}
    person = callers.select(latchkey.db, g.caller)
    return MembershipSteps(person).step({"requires": requires}, request.path.removeprefix("/account/"))


def _answer(error: ApiError) -> Response:
    if not asks_for_page():
        return envelope(error)
    problem = replace(problem_of(error), reason=_for_developer(error.details))
    response = page("error.html", status=problem.status, problem=problem, here=None, onward=_onward())
    response.headers.extend(problem.headers)
    return response


def _onward() -> tuple[str, str, str]:
    """Return the path of the page to which an error leads, and the text of the link."""
    settings = latchkey.settings
    if settings.console and (request.path + "/").startswith("/console/"):
        return "console", "confirm", "console"
    if not settings.pages:
        return "", "error", "button"
    return (
        ("account", "signed_in", "account")
        if cookies.read(forms.SESSION)
        else ("sign-in", "sign_in", "button")
    )


def show(exception: Exception) -> Response:
    """Answer with the envelope, or, on the routes that browsers open, with a page."""
    error = as_api_error(exception)
    return _answer(error) if g.route.refuses_by_page else envelope(error)


def _start_of_form() -> str | None:
    """Return the path of the page whose form has the requested target, or None."""
    if not _is_ours(request.path, "POST"):
        return None
    path = request.path
    while path := path.rpartition("/")[0]:
        if _is_ours(path, "GET"):
            return path[1:]
    return "sign-in"


def _is_ours(path: str, method: str, blueprints: tuple[str, ...] = ("pages.", "brand.")) -> bool:
    """Whether a page, or the target of a form, has this path."""
    adapter = current_app.create_url_adapter(request)
    with suppress(HTTPException):
        return adapter is not None and adapter.match(path, method)[0].startswith(blueprints)
    return False


def show_no_page(exception: HTTPException) -> Response:
    """Answer a browser at an unknown path, or one that opens the target of a form."""
    error = as_api_error(exception)
    if request.method in _OPENING_METHODS and asks_for_page():
        if request.path.endswith("/") and _is_ours(request.path[:-1], "GET", _PAGE_BLUEPRINTS):
            query = request.query_string.decode("ascii", "replace")
            return redirect_to_own(quote(request.path[1:-1]) + (query and f"?{query}"))
        if start := _start_of_form():
            return redirect_to_own(start)
    if request.method not in _OPENING_METHODS and request.mimetype not in _FORM_TYPES:
        return envelope(error)
    not_found = ApiError("not_found", status=error.status, headers=error.headers)
    return _answer(not_found) if asks_for_page() else envelope(error)
