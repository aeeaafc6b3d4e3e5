"""Errors of OAuth (RFC 6749, section 5.2), which clients read from `error` and `error_description`."""

from collections.abc import Mapping
from dataclasses import KW_ONLY, dataclass, field
from typing import Any

from flask import Blueprint, Response, json

from auth.web import g
from auth.web.application import JsonResponse
from auth.web.error_handlers import as_api_error
from auth.web.errors import bearer_challenge, oauth_members


@dataclass(eq=False)
class OAuthError(Exception):
    """An error of the RFCs. `members` are added to the body; `remedy` is only for the log.

    `reason` is the error_code in the audit log, if any.
    """

    error: str
    description: str
    status: int = 400
    _: KW_ONLY
    headers: Mapping[str, str] = field(default_factory=dict)
    members: Mapping[str, object] = field(default_factory=dict)
    remedy: str | None = None
    reason: str | None = None


def invalid_client(description: str, headers: Mapping[str, str] | None = None) -> OAuthError:
    """Return the refusal of a client's credentials, with the members of our envelope."""
    members = {"code": 401, "msg": description, "error_code": "invalid_credentials"}
    return OAuthError("invalid_client", description, 401, headers=headers or {}, members=members)


def register(blueprint: Blueprint) -> None:
    """Use this format for errors of a blueprint."""
    blueprint.register_error_handler(OAuthError, answer)
    blueprint.register_error_handler(Exception, _answer_other)


def _answer_other(error: Exception) -> Response:
    known = as_api_error(error)
    said: dict[str, Any] = {**oauth_members(known), **known.members}
    headers = dict(known.headers)
    if known.status == 401 or said["error"] == "insufficient_scope":
        headers["WWW-Authenticate"] = bearer_challenge(known)
    members = {"code": known.status, "msg": known.msg, "error_code": known.error_code}
    return answer(
        OAuthError(
            said["error"],
            said["error_description"],
            known.status,
            headers=headers,
            members=members,
            reason=known.error_code,
        )
    )


def answer(error: OAuthError) -> Response:
    g.refused_because = error.reason or error.error
    body = {"error": error.error, "error_description": error.description, **error.members}
    response = JsonResponse(json.dumps(body), error.status)
    response.headers.extend(error.headers)
    return response
