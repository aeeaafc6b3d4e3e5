import json
from collections.abc import Callable, Mapping
from itertools import chain

from authlib.oauth2.rfc7636 import create_s256_code_challenge
from flask import Blueprint, Response, request
from flask.typing import ResponseReturnValue

from auth.flows.sessions import refreshing
from auth.flows.sessions.token_response import exchange, token_response
from auth.flows.sign_in.passwords import sign_in_with_password
from auth.web import answered_by, asks_more, audited, counted, fields, schemas, takes_tokens
from auth.web.application import JsonResponse
from auth.web.asked import current_asked
from auth.web.context import latchkey
from auth.web.errors import ApiError, found
from auth.web.input import read_body
from auth.web.limits import limited
from sql import queries

blueprint = Blueprint("token", __name__)
_PasswordGrant = schemas.Addressed.of(password=fields.Password(required=True))
_RefreshGrant = schemas.Input.of(refresh_token=fields.Text(required=True))
_PkceGrant = schemas.Input.of(
    auth_code=fields.NonEmptyText(required=True), code_verifier=fields.CodeVerifier(required=True)
)


@blueprint.post("/token")
@takes_tokens
@counted("sign_in_with_password", "sign_in_with_id_token", "refresh", "exchange_code", "exchange_api_key")
@asks_more
def token() -> ResponseReturnValue:
    """Issue tokens (RFC 6749, sections 4.3 and 6)."""
    names = request.args.getlist("grant_type")
    if len(names) != 1:
        problem = "must be given once" if names else "is required in the query"
        raise ApiError("validation_failed", f"grant_type: {problem}")
    if names[0] in GRANTS:
        return answered_by(GRANTS[names[0]])
    others = dict(chain.from_iterable(each.grants().items() for each in latchkey.extensions))
    if names[0] in others:
        return answered_by(others[names[0]])
    if names[0] == "web3":
        raise ApiError("web3_provider_disabled")
    offered = ", ".join([*GRANTS, *others])
    raise ApiError("unsupported_grant_type", f"grant_type: must be one of {offered}")


@blueprint.post("/login-admin")
@limited("sign_in_with_password", is_queued=True)
@audited("sign_in_refused", sign_in="password")
def login_admin() -> Response:
    asked = current_asked()
    body = read_body(_PasswordGrant)
    session = sign_in_with_password(asked, body, asked.parts.token_hook, role="admin")
    user = json.loads(session.user_object)
    row = found(queries.select_administrator(latchkey.db, id=user["id"]), "user_not_found")
    details = {"id": user["id"], "email": user["email"], "is_admin": True, "created_at": row.admin_since}
    return JsonResponse(token_response(asked.parts, session, admin_details=details))


@limited("sign_in_with_password", is_queued=True)
@audited("sign_in_refused", sign_in="password")
def _by_password() -> Response:
    asked = current_asked()
    session = sign_in_with_password(asked, read_body(_PasswordGrant), asked.parts.token_hook)
    return JsonResponse(token_response(asked.parts, session))


@counted("refresh")
@audited("refresh_refused", sign_in="refresh")
def _refresh() -> Response:
    asked = current_asked()
    session = refreshing.refresh(asked, read_body(_RefreshGrant)["refresh_token"])
    return JsonResponse(token_response(asked.parts, session))


@limited("exchange_code")
@audited("sign_in_refused", sign_in="pkce")
def _exchange_code() -> Response:
    asked = current_asked()
    body = read_body(_PkceGrant)
    session = exchange(asked, body["auth_code"], create_s256_code_challenge(body["code_verifier"]))
    return JsonResponse(token_response(asked.parts, session))


# Extensions add theirs.
GRANTS: Mapping[str, Callable[[], ResponseReturnValue]] = {
    "password": _by_password,
    "refresh_token": _refresh,
    "pkce": _exchange_code,
}
