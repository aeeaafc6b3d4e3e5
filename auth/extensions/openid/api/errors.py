"""Responses with the errors of OAuth, in place of our envelope."""

from typing import Any

from flask import Blueprint, Response, json

from auth.extensions.openid.oauth_errors import OAuthError, described
from auth.web import g
from auth.web.application import JsonResponse
from auth.web.error_handlers import as_api_error
from auth.web.errors import bearer_challenge, oauth_members


def register(blueprint: Blueprint) -> None:
    """Use this format for errors of a blueprint."""
    blueprint.register_error_handler(OAuthError, answer)
    blueprint.register_error_handler(Exception, _answer_other)


def _answer_other(exception: Exception) -> Response:
    error = as_api_error(exception)
    members: dict[str, Any] = {**oauth_members(error), **error.members}
    headers = dict(error.headers)
    if error.status == 401 or members["error"] == "insufficient_scope":
        headers["WWW-Authenticate"] = bearer_challenge(error)
    return answer(
        OAuthError(
            members["error"],
            members["error_description"],
            error.status,
            headers=headers,
            members={"code": error.status, "msg": error.msg, "error_code": error.error_code},
            reason=error.error_code,
        )
    )


def answer(error: OAuthError) -> Response:
    g.refused_because = error.reason or error.error
    body = {"error": error.error, "error_description": described(error.description), **error.members}
    response = JsonResponse(json.dumps(body), error.status)
    response.headers.extend(error.headers)
    return response
