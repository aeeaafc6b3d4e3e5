import json
from collections.abc import Callable, Mapping

from flask import Blueprint, Response, request
from flask.typing import ResponseReturnValue

from auth.core.settings import Settings
from auth.extensions.openid import claims, device_codes, exchange, introspection
from auth.extensions.openid.api import errors
from auth.extensions.openid.authentication import ClientInput, SentCredentials, authenticate, read_credentials
from auth.extensions.openid.authorization_requests import log_error
from auth.extensions.openid.clients import DEVICE_CODE
from auth.extensions.openid.oauth_errors import OAuthError, invalid_client
from auth.web import answered_by, fields, g, guard, limits
from auth.web.application import JsonResponse
from auth.web.asked import Asked, current_asked
from auth.web.context import latchkey
from auth.web.declarations import Level, accepts_forms, any_origin, audited, counted, says, takes_tokens
from auth.web.errors import ApiError
from auth.web.input import Shape, read_body
from auth.web.limits import limited
from sql import queries

blueprint = Blueprint("openid", __name__)
errors.register(blueprint)


class _TokenRequest(ClientInput):
    grant_type = fields.Text()
    code = fields.Text()
    device_code = fields.Text()
    code_verifier = fields.CodeVerifier()
    redirect_uri = fields.Text()
    resource = fields.Text()
    refresh_token = fields.Text()
    scope = fields.Text()


_DeviceRequest = ClientInput.of(scope=fields.Text(), resource=fields.Text())
_Revocation = ClientInput.of(token=fields.LongText())
_Introspection = ClientInput.of(token=fields.LongText(required=True))


@blueprint.post("/oauth/token")
@any_origin
@accepts_forms
@counted("redeem_client_code", "refresh", "issue_to_client", "poll_device_code")
@guard.client
def oauth_token() -> ResponseReturnValue:
    """Issue tokens to a client (RFC 6749, section 3.2)."""
    body = _read(_TokenRequest)
    if "grant_type" not in body:
        raise OAuthError("invalid_request", "grant_type: is required")
    if body["grant_type"] not in GRANTS:
        raise OAuthError("unsupported_grant_type", f"grant_type: must be one of {', '.join(GRANTS)}")
    return answered_by(GRANTS[body["grant_type"]], body)


@blueprint.post("/oauth/device_authorization")
@limited("request_device_code")
@accepts_forms
@guard.client
def authorize_device() -> Response:
    """Return the codes of a device, one of which its user types elsewhere (RFC 8628, section 3.1)."""
    return _answer(device_codes.begin, _read(_DeviceRequest))


@blueprint.get("/oauth/userinfo")
@blueprint.post("/oauth/userinfo")
@any_origin
@guard.client_token(Level.CLIENT)
@accepts_forms
def userinfo() -> Response:
    """Return the claims about the user for the scopes of the access token."""
    asked, caller = current_asked(), g.client_caller
    row = queries.select_client_caller(asked.db, **caller.parameters)
    if row is None:
        raise ApiError("session_not_found")
    if refusal := introspection.refusal_of(row, caller, asked.parts.policy):
        raise ApiError("expired.bad_jwt" if refusal == "bad_jwt" else "session_not_found")
    scopes = set(caller.scopes) & set(row.scopes or ())
    if "openid" not in scopes:
        raise ApiError("openid.insufficient_scope")
    answer = claims.of_user(asked.settings, row, scopes)
    # Some clients of other servers read these names.
    aliases = {"phone": "phone_number", "phone_verified": "phone_number_verified"}
    answer |= {alias: answer[name] for alias, name in aliases.items() if name in answer}
    return JsonResponse(json.dumps(answer))


@blueprint.post("/oauth/revoke")
@any_origin
@limited("revoke_client_token")
@accepts_forms
@takes_tokens
@guard.client
def revoke() -> Response:
    """End the session of a client's access token or refresh token (RFC 7009)."""
    asked, body = current_asked(), read_body(_Revocation)
    client = authenticate(asked.parts, _read_credentials(asked.settings, body))
    if "token" not in body:
        raise OAuthError("invalid_request", "token: is required")
    if session_id := exchange.session_of(asked, body["token"]):
        exchange.revoke(asked, session_id, client.id)
    return JsonResponse("{}")


@any_origin
@limited("redeem_client_code")
@says(sign_in="oauth_client")
def _redeem(body: dict[str, str]) -> Response:
    return _answer(exchange.redeem, body)


@any_origin
@counted("refresh")
@audited("refresh_refused")
def _refresh(body: dict[str, str]) -> Response:
    return _answer(exchange.refresh, body)


@any_origin
@limited("issue_to_client")
def _issue_to_client(body: dict[str, str]) -> Response:
    return _answer(exchange.issue_to_client, body)


@any_origin
@counted("poll_device_code")
@audited("application_refused", sign_in="oauth_client")
def _poll(body: dict[str, str]) -> Response:
    try:
        limits.count("poll_device_code", g.client["network"])
    except ApiError as error:
        # Libraries of devices give up at other errors (RFC 8628, section 3.5).
        members = {"code": error.status, "msg": error.msg, "error_code": error.error_code}
        reason, headers = error.error_code, error.headers
        raise OAuthError(
            "slow_down", error.msg, error.status, headers=headers, members=members, reason=reason
        ) from None
    return _answer(device_codes.redeem, body)


def read_introspection() -> "tuple[str, queries.SelectClient]":
    """Return the token and the row of a client that asks POST /introspect. Raises `OAuthError`."""
    body = read_body(_Introspection)
    credentials = _read_credentials(latchkey.settings, body)
    client = authenticate(latchkey, credentials)
    if credentials.secret_hash is None:
        raise invalid_client("public clients cannot introspect tokens")
    return body["token"], client


def _read(shape: Shape) -> dict[str, str]:
    try:
        body: dict[str, str] = read_body(shape)
    except ApiError:
        # A token is for one resource (RFC 8707, section 2).
        if len(resources := request.form.getlist("resource")) > 1:
            sent = {"resource": " ".join(resources)}
            raise OAuthError("invalid_target", "resource: must be given once", sent=sent) from None
        raise
    return body


def _read_credentials(settings: Settings, body: Mapping[str, str]) -> SentCredentials:
    return read_credentials(settings, body, request.headers.get("Authorization", ""))


def _answer(
    issue: Callable[[Asked, dict[str, str], SentCredentials], Mapping[str, object]], body: dict[str, str]
) -> Response:
    asked = current_asked()
    credentials = _read_credentials(asked.settings, body)
    try:
        issued = issue(asked, body, credentials)
    except OAuthError as error:
        if error.sent or error.remedy:
            log_error(credentials.client_id, error)
        raise
    response = JsonResponse(json.dumps(issued))
    response.headers["Pragma"] = "no-cache"
    return response


GRANTS: Mapping[str, Callable[[dict[str, str]], ResponseReturnValue]] = {
    "authorization_code": _redeem,
    "refresh_token": _refresh,
    "client_credentials": _issue_to_client,
    DEVICE_CODE: _poll,
}
