"""What went wrong with a form, as a sentence next to it, with the field that it concerns."""

import functools
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import psycopg2
from flask import Response, request
from flask_limiter import RateLimitExceeded

from auth.addresses import looks_like_phone
from auth.context import latchkey
from auth.pages.page import chosen_language, has_text, text
from auth.passwords.hashing import TooManyWaiting
from auth.passwords.policy import WeakPassword
from auth.text.moments import wait
from auth.web import View, audit, g
from auth.web.errors import ApiError, as_api_error

_FIELDS = {
    "invalid_credentials": "password",
    "weak_password": "password",
    "same_password": "password",
    "current_password_invalid": "current_password",
    "reauthentication_not_valid": "nonce",
    "otp_expired": "code",
    "mfa_verification_failed": "code",
    "email_exists": "email",
    "user_already_exists": "email",
    "phone_exists": "phone",
    "over_email_send_rate_limit": None,
    # The form has no field for a code any more.
    "elsewhere.otp_expired": None,
    "sign_up_elsewhere.otp_expired": None,
}
# The texts of errors in a context, by their keys.
_BY_KEY = {
    "elsewhere.otp_expired": "used_elsewhere",
    "sign_up_elsewhere.otp_expired": "used_elsewhere_sign_up",
    "country.validation_failed": "country_invalid",
    "factor.over_request_rate_limit": "factor_rate_limit",
}
# Handled by other pages: see auth/pages/errors.py.
ELSEWHERE = {"reauthentication_needed", "insufficient_aal", "session_not_found", "session_expired"}

# Constraints raise some of these. Without the database, the form is shown again with what was typed.
_REFUSALS = (ApiError, WeakPassword, TooManyWaiting, RateLimitExceeded, psycopg2.Error)


def asks_for_page() -> bool:
    """Whether a browser asks, rather than a program."""
    return request.accept_mimetypes.best_match(["application/json", "text/html"]) == "text/html"


@dataclass(frozen=True)
class Problem:
    text: str
    field: str | None
    status: int
    headers: Mapping[str, str]
    error_code: str
    key: str


def shows(
    page: Callable[..., Response],
    explain: Callable[[Exception], Problem] | None = None,
    *,
    limit: str = "over_request_rate_limit",
) -> Callable[[View], View]:
    """Return a decorator for form views that shows `page(problem=…)` again if the form is refused, with the
    text `limit` if that is because of a limit."""
    explain = explain or functools.partial(problem_of, limit=limit)

    def decorate(view: View) -> View:
        @functools.wraps(view)
        def answered(*args: Any, **kwargs: Any) -> Any:
            try:
                return view(*args, **kwargs)
            except _REFUSALS as error:
                return _shown_again(error, functools.partial(page, **kwargs), explain)

        return answered

    return decorate


def _shown_again(
    error: Exception, page: Callable[..., Response], explain: Callable[[Exception], Problem]
) -> Response:
    if not asks_for_page():
        raise error
    problem = explain(error)
    if problem.error_code in ELSEWHERE:
        raise error
    response = page(problem=problem)
    response.status_code = problem.status
    response.headers.extend(problem.headers)
    return response


def told() -> Mapping[str, Any] | None:
    """Return the problem named by a redirect to this page, if any."""
    name = request.args.get("error_code", "")
    if name == "otp_expired":
        return {"text": text("welcome", name)}
    # The texts of limits name a time, which a redirect does not.
    known = has_text("errors", name) and not name.endswith("_rate_limit") and not name.startswith("weak_")
    said = text("errors", name if known else "other", request_id=g.request_id)
    return {"text": said} if name else None


def problem_of(exception: Exception, *, limit: str = "over_request_rate_limit") -> Problem:
    """Return the problem to show for an exception, and record the refusal in the audit log."""
    error = as_api_error(exception)
    audit.refused(error.error_code)
    field = _FIELDS.get(error.key, _FIELDS.get(error.error_code))
    if error.error_code == "validation_failed" and error.details:
        field = error.details.partition(":")[0]
    if error.error_code == "mfa_verification_failed" and "recovery_code" in request.form:
        field = "recovery_code"
    name = _name(exception, error, field, limit)
    values = {
        "wait": wait(int(error.headers.get("Retry-After", "0")), chosen_language()),
        "least": latchkey.settings.password_min_length,
        "request_id": g.request_id,
    }
    said = text("errors", name, **values)
    # A 401 would have to name a scheme (RFC 9110, section 11.6.1), which forms do not have.
    status = 403 if error.status == 401 else error.status
    return Problem(said, field, status, error.headers, error.error_code, error.key)


def _name(exception: Exception, error: ApiError, field: str | None, limit: str) -> str:
    """Return the name of an error's text."""
    if isinstance(exception, WeakPassword):
        return f"weak_{next(iter(exception.problems))}"
    if error.key in _BY_KEY:
        return _BY_KEY[error.key]
    name = "recovery_code_invalid" if field == "recovery_code" else error.error_code
    if name == "validation_failed":
        name = f"{field}_invalid"
    if name == "over_request_rate_limit":
        name = limit
    if looks_like_phone(request.form.get("email", "")) and has_text("errors", f"{name}_phone"):
        return f"{name}_phone"
    return name if has_text("errors", name) else "other"
