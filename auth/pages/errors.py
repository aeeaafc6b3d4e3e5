"""Errors that no form shows: a page for people, the envelope for programs."""

from urllib.parse import urlencode

from flask import Blueprint, Flask, Response, request
from werkzeug.exceptions import HTTPException

from auth.pages.page import page, to_own
from auth.pages.problems import ELSEWHERE, asks_for_page, problem_of
from auth.web import current_route
from auth.web.application import FORM
from auth.web.edge import for_no_other_origin
from auth.web.errors import ApiError, as_api_error, envelope

# Where an error on a page leads.
STEPS = {"insufficient_aal": "second-step", "reauthentication_needed": "account/confirm"}
_APPLICATION = ("redirect_to", "code_challenge", "then")
_FORMS = {FORM, "multipart/form-data"}


def register(app: Flask, has_pages: bool) -> None:
    app.register_error_handler(Exception, _shown)
    if has_pages:
        for status in (404, 405):
            app.register_error_handler(status, _no_page)


def register_in(pages: Blueprint) -> None:
    pages.register_error_handler(Exception, _error)
    pages.after_request(for_no_other_origin)


def _error(error: Exception) -> Response:
    """Redirect to the missing step, or show what went wrong."""
    known = as_api_error(error)
    if known.error_code not in ELSEWHERE or not asks_for_page():
        return _answer(known)
    if known.error_code in STEPS:
        # The page checks both again.
        application = {name: request.values[name] for name in _APPLICATION if name in request.values}
        return to_step(known.key, {"next": request.path.rpartition("/")[2]} | application)
    # The page shows why a link failed.
    said = {name: request.args[name] for name in ("error_code",) if name in request.args}
    return to_step(known.key, said)


def to_step(key: str, query: dict[str, str]) -> Response:
    """Redirect to the page for an error of `ELSEWHERE`, with the prefix of its key in `by`."""
    by, _, error_code = key.rpartition(".")
    if error_code in STEPS:
        return to_own(f"{STEPS[error_code]}?{urlencode({'by': by} | query if by else query)}")
    # The cookie stays: browsers do not send it with forms of other sites, and one that a form is sent with
    # twice is renewed meanwhile.
    return to_own(f"sign-in?{urlencode({'error_code': 'session_expired'} | query)}")


def _page(error: ApiError) -> Response:
    problem = problem_of(error)
    response = page("error.html", status=problem.status, problem=problem, here=None)
    response.headers.extend(problem.headers)
    return response


def _answer(error: ApiError) -> Response:
    return _page(error) if asks_for_page() else envelope(error)


def _shown(error: Exception) -> Response:
    known = as_api_error(error)
    return _answer(known) if current_route().refuses_by_page else envelope(known)


def _no_page(error: HTTPException) -> Response:
    """Answer a browser that opens or posts to an unknown path, or opens the target of a form."""
    known = as_api_error(error)
    is_navigation = request.method in ("GET", "HEAD") or request.mimetype in _FORMS
    if not is_navigation or not asks_for_page():
        return envelope(known)
    missing = ApiError("not_found", headers=known.headers)
    missing.status = known.status
    return _page(missing)
