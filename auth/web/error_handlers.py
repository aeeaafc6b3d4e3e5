"""Turns exceptions into responses."""

import functools
import traceback
from typing import cast

import psycopg2
import structlog
from flask import request
from flask.globals import request_ctx
from gunicorn.http.errors import ParseException
from psycopg2.errors import CheckViolation, ReadOnlySqlTransaction, UniqueViolation
from werkzeug.exceptions import HTTPException
from werkzeug.routing import MapAdapter

from auth import registry
from auth.core import health
from auth.core.logs import ThrottledLog
from auth.core.passwords.hashing import TooManyWaiting
from auth.core.passwords.policy import WeakPassword
from auth.web import g
from auth.web.context import latchkey
from auth.web.errors import ApiError, unavailable

log = structlog.get_logger()
_queue_log = ThrottledLog("hashing_queue_full")
_CONSTRAINTS = {
    "users_email_key": "email_exists",
    "users_phone_key": "phone_exists",
    "users_pkey": "id.user_already_exists",
    "factors_credential_id_key": "webauthn_credential_exists",
    "factors_friendly_name_key": "mfa_factor_name_conflict",
    "user_metadata_size": "user_metadata.validation_failed",
    "app_metadata_size": "app_metadata.validation_failed",
}
_HTTP_ERRORS = {404: "not_found", 405: "method_not_allowed"}


@functools.singledispatch
def as_api_error(error: Exception) -> ApiError:
    # str(error) is left out: Postgres quotes the values of the row in its DETAIL.
    frames = traceback.extract_tb(error.__traceback__)
    places = [f"{frame.filename}:{frame.lineno} {frame.name}" for frame in frames]
    message = error.diag.message_primary if isinstance(error, psycopg2.Error) else None
    log.error("unexpected_failure", error=type(error).__name__, said=message, where=places)
    return ApiError("unexpected_failure", request_id=g.request_id)


as_api_error.register(ApiError, lambda error: error)
_unexpected = as_api_error.dispatch(Exception)


@as_api_error.register
def _http_error(error: HTTPException) -> ApiError:
    status = error.code or 500
    if status >= 500:
        return _unexpected(error)
    if status == 404 and (key := registry.error_while_off(latchkey.settings, request.path)):
        return ApiError(key)
    if status == 404 and (path := _path_without_slash()):
        return ApiError("slash.not_found", path=path)
    allow = {name: value for name, value in error.get_headers() if name == "Allow"}
    return ApiError(_HTTP_ERRORS.get(status, "validation_failed"), status=status, headers=allow)


def _path_without_slash() -> str | None:
    """Return the rule that matches the path of the request without its last slash."""
    if not request.path.endswith("/"):
        return None
    try:
        rule, _ = cast("MapAdapter", request_ctx.url_adapter).match(request.path[:-1], return_rule=True)
    except HTTPException:
        return None
    return rule.rule


@as_api_error.register
def _database_error(error: psycopg2.Error) -> ApiError:
    if key := key_of_constraint(error):
        return ApiError(key, _size_details(str(error.diag.constraint_name)))
    if isinstance(error, psycopg2.OperationalError | psycopg2.InterfaceError | ReadOnlySqlTransaction):
        log.error("database_unavailable", reason=str(error).strip())
        health.report_trouble(error)
        return unavailable()
    return _unexpected(error)


def key_of_constraint(error: psycopg2.Error) -> str | None:
    """Return the key of the error that a constraint of ours means, or None for other errors."""
    is_of_constraint = isinstance(error, UniqueViolation | CheckViolation)
    return _CONSTRAINTS.get(error.diag.constraint_name or "") if is_of_constraint else None


def _size_details(constraint: str) -> str | None:
    column = constraint.removesuffix("_size")
    if column == constraint:
        return None
    body = request.form if g.json_body is None else g.json_body
    name = column if column in body else "data" if column == "user_metadata" else "options"
    return f"{name}: must be at most 8 KiB as JSON"


@as_api_error.register
def _broken_body(_error: ParseException) -> ApiError:
    # gunicorn parses chunks when the view reads the body.
    return ApiError("bad_json", "the body's chunks are malformed")


@as_api_error.register
def _weak_password(error: WeakPassword) -> ApiError:
    key = "admin.weak_password" if g.route.is_administrative else "weak_password"
    members = {"weak_password": {"reasons": list(error.problems)}}
    requirement = next(iter(error.problems.values()))
    return ApiError(key, f"password: {error}", members=members, requirement=requirement)


@as_api_error.register
def _too_many_waiting(_error: TooManyWaiting) -> ApiError:
    _queue_log.count()
    return unavailable("hashing.service_unavailable")
