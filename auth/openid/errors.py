"""Errors of OAuth (RFC 6749, section 5.2), which clients read from `error` and `error_description`."""

from collections.abc import Mapping
from typing import Any

from flask import Blueprint, Response, json

from auth.web import audit
from auth.web.application import JsonResponse
from auth.web.errors import ApiError, as_api_error

_BY_STATUS = {429: "temporarily_unavailable", 500: "server_error", 503: "temporarily_unavailable"}


class OAuthError(Exception):
    """An error by its name in the RFCs. `members` are added to the body."""

    def __init__(
        self,
        error: str,
        description: str,
        status: int = 400,
        *,
        headers: Mapping[str, str] | None = None,
        members: Mapping[str, Any] | None = None,
    ) -> None:
        self.error = error
        self.description = description
        self.status = status
        self.headers = headers or {}
        self.members = members or {}
        super().__init__(description)


def invalid_client(description: str, *, by_basic: bool = False) -> OAuthError:
    """Return the refusal of a client's credentials, which has the members of our envelope too."""
    members = {"code": 401, "msg": description, "error_code": "invalid_credentials"}
    headers = {"WWW-Authenticate": "Basic"} if by_basic else {}
    return OAuthError("invalid_client", description, 401, headers=headers, members=members)


def register(blueprint: Blueprint) -> None:
    """Answer all errors of a blueprint in this form, but those of disabled routes."""
    blueprint.register_error_handler(OAuthError, _answer)
    blueprint.register_error_handler(Exception, lambda error: _answer(_as_oauth_error(as_api_error(error))))


def _as_oauth_error(error: ApiError) -> OAuthError:
    name = _BY_STATUS.get(error.status, "invalid_request")
    members = {"code": error.status, "msg": error.msg, "error_code": error.error_code}
    description = error.details or error.msg
    return OAuthError(name, description, error.status, headers=error.headers, members=members)


def _answer(error: OAuthError) -> Response:
    audit.refused(error.error)
    body = {"error": error.error, "error_description": error.description, **error.members}
    response = JsonResponse(json.dumps(body), error.status)
    response.headers.extend(error.headers)
    return response
