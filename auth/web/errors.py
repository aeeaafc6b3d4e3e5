"""Errors as the outside sees them: one exception, one envelope, one place that turns everything else into it."""

import traceback
from collections.abc import Mapping
from http import HTTPStatus
from typing import Any

import psycopg2
import structlog
from flask import Flask, Response, g, json
from gunicorn.http.errors import ParseException
from psycopg2.errors import CheckViolation, ReadOnlySqlTransaction, UniqueViolation
from werkzeug.exceptions import HTTPException

from auth.passwords.hashing import TooManyWaiting
from auth.tally import Tally
from auth.web import audit
from auth.web.application import JsonResponse

log = structlog.get_logger()
_queue_full = Tally("hashing_queue_full")

# Constraints speak for themselves; this is what they say: status, error_code, msg.
_CONSTRAINTS = {
    "users_email_key": (409, "email_exists", "A user with this email address has already been registered"),
    "users_phone_key": (409, "phone_exists", "A user with this phone number has already been registered"),
    "user_metadata_size": (400, "validation_failed", "User metadata is too large"),
    "app_metadata_size": (400, "validation_failed", "App metadata is too large"),
}
_STATUS_CODES = {
    404: ("not_found", "There is nothing at this path"),
    405: ("method_not_allowed", "This path does not answer this method"),
    413: ("request_entity_too_large", "The body is larger than 1 MiB"),
    500: ("unexpected_failure", "Something went wrong on our side"),
}


class ApiError(Exception):
    """What a client is told: HTTP status, a code for programs, a sentence for people, and perhaps details of the field."""

    def __init__(
        self,
        status: int,
        error_code: str,
        msg: str,
        details: str | None = None,
        *,
        headers: Mapping[str, str] | None = None,
        members: Mapping[str, Any] | None = None,
    ) -> None:
        super().__init__(msg)
        self.status = status
        self.error_code = error_code
        self.msg = msg
        self.details = details
        self.headers = dict(headers or {})
        self.members = dict(members or {})


def unavailable(msg: str = "The service can't answer at the moment; try again shortly") -> ApiError:
    """Return the error for a passing lack: of the database, or of time to hash."""
    return ApiError(503, "service_unavailable", msg, headers={"Retry-After": "2"})


def envelope(error: ApiError) -> Response:
    """Return the error envelope of the specification."""
    audit.refused(error.error_code)
    body: dict[str, Any] = {"code": error.status, "msg": error.msg}
    if error.details:
        body["details"] = error.details
    body["error_code"] = error.error_code
    body |= error.members
    response = JsonResponse(json.dumps(body), error.status)
    response.headers.extend(error.headers)
    if error.status == 401:
        response.headers["WWW-Authenticate"] = "Bearer"
    return response


def register(app: Flask) -> None:
    """Install the handlers."""
    app.register_error_handler(ApiError, envelope)
    app.register_error_handler(HTTPException, _http_error)
    app.register_error_handler(psycopg2.Error, _database_error)
    app.register_error_handler(ParseException, _broken_body)
    app.register_error_handler(TooManyWaiting, _too_many_waiting)
    app.register_error_handler(Exception, _unexpected)


def _http_error(error: HTTPException) -> Response | HTTPException:
    status = error.code or 500
    if status < 400:
        return error
    error_code, msg = _STATUS_CODES.get(status, ("validation_failed", f"{HTTPStatus(status).phrase}"))
    allow = {name: value for name, value in error.get_headers() if name == "Allow"}
    return envelope(ApiError(status, error_code, msg, headers=allow))


def _database_error(error: psycopg2.Error) -> Response:
    if isinstance(error, UniqueViolation | CheckViolation) and error.diag.constraint_name in _CONSTRAINTS:
        status, error_code, msg = _CONSTRAINTS[error.diag.constraint_name]
        details = f"{_sent_name(error.diag.constraint_name.removesuffix('_size'))}: must be at most 8 KiB as JSON" if status == 400 else None
        return envelope(ApiError(status, error_code, msg, details))
    if isinstance(error, psycopg2.OperationalError | psycopg2.InterfaceError | ReadOnlySqlTransaction):
        log.error("database_unavailable", reason=str(error).strip())
        return envelope(unavailable())
    return _unexpected(error)


def _sent_name(column: str) -> str:
    """Return the member by which a body has sent a column."""
    body = g.get("json_body", {})
    return column if column in body else "data" if column == "user_metadata" else "options"


def _broken_body(_error: ParseException) -> Response:
    # gunicorn reads a body when a view does, and finds only then that a chunk of it is malformed.
    return envelope(ApiError(400, "bad_json", "The body could not be read", "the body's chunks are malformed"))


def _too_many_waiting(_error: TooManyWaiting) -> Response:
    _queue_full.count()
    return envelope(unavailable("Too many sign-ins at once; try again shortly"))


def _unexpected(error: Exception) -> Response:
    # Neither the message nor the values at hand: what Postgres says of a broken row is all that is in it.
    where = [f"{frame.filename}:{frame.lineno} {frame.name}" for frame in traceback.extract_tb(error.__traceback__)]
    said = error.diag.message_primary if isinstance(error, psycopg2.Error) else None
    log.error("unexpected_failure", error=type(error).__name__, said=said, where=where)
    msg = f"Something went wrong on our side; the request id is {g.request_id}"
    return envelope(ApiError(500, "unexpected_failure", msg))
