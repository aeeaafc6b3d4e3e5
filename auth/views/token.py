"""POST /token: signing in with a password, and trading a refresh token."""

from typing import Any

import structlog
from flask import Blueprint, Response, jsonify

from auth import schemas
from auth.context import latchkey
from auth.errors import ApiError
from auth.refresh_tokens import InvalidRefreshToken
from auth.token_response import token_response
from auth.wire import client, read_body, read_query

log = structlog.get_logger()
blueprint = Blueprint("token", __name__)

_SIGN_IN_REFUSALS = {
    "user_banned": "This user is banned",
    "email_not_confirmed": "The email address is not confirmed yet",
    "phone_not_confirmed": "The phone number is not confirmed yet",
}
_REFRESH_REFUSALS = {
    "refresh_token_not_found": "Invalid Refresh Token: the session has ended",
    "refresh_token_already_used": "Invalid Refresh Token: it was used before, so the session has been ended",
    "session_expired": "Invalid Refresh Token: the session has expired",
    "user_banned": "Invalid Refresh Token: this user is banned",
}


@blueprint.post("/token")
def token() -> Response:
    """Issue tokens (RFC 6749, sections 4.3 and 6)."""
    grants = {"password": _sign_in, "refresh_token": _refresh}
    grant = grants.get(read_query(schemas.TokenQuery())["grant_type"])
    if grant is None:
        raise ApiError(400, "unsupported_grant_type", "Unsupported grant type", f"grant_type: must be one of {', '.join(grants)}")
    return jsonify(grant())


def _sign_in() -> dict[str, Any]:
    body = read_body(schemas.PasswordGrant())
    email, phone = body.get("email"), body.get("phone")
    settings = latchkey.settings
    if email and not settings.email_enabled:
        raise ApiError(400, "email_provider_disabled", "Sign-in by email is disabled")
    if phone and not settings.phone_enabled:
        raise ApiError(400, "phone_provider_disabled", "Sign-in by phone is disabled")
    invalid = ApiError(401, "invalid_credentials", "Invalid login credentials")

    # The same for an unknown address, a wrong password, and a user without one: a statement, and a hash.
    known = latchkey.db.one("select_password", email=email, phone=phone)
    password_hash = known and known.password_hash
    if not latchkey.passwords.check(body["password"], password_hash):
        raise invalid
    row = latchkey.db.one(
        "sign_in",
        user_id=known.user_id,
        checked_password_hash=password_hash,
        new_password_hash=latchkey.passwords.renewed_hash(body["password"], password_hash),
        email=email,
        method="password",
        **client(),
    )
    if row is None or row.state == "invalid_credentials":
        raise invalid
    if row.state != "live":
        raise ApiError(403, row.state, _SIGN_IN_REFUSALS[row.state])
    return token_response(row, "password")


def _refresh() -> dict[str, Any]:
    body = read_body(schemas.RefreshGrant())
    try:
        sent = latchkey.refresh_tokens.read(body["refresh_token"])
    except InvalidRefreshToken:
        raise ApiError(400, "refresh_token_not_found", "Invalid Refresh Token: it is not one of this service") from None
    row = latchkey.db.one("refresh_session", session_id=sent.session_id, counter=sent.counter)
    if row is None:
        row = latchkey.db.one("select_refresh_refusal", session_id=sent.session_id)
    state = row.state if row else "refresh_token_not_found"
    if state == "refresh_token_already_used":
        log.warning("refresh_token_reused", session_id=sent.session_id, user_id=row.user_id, **client())
    if state != "live":
        raise ApiError(400, state, _REFRESH_REFUSALS[state])
    return token_response(row, row.method, row.signed_in_at)
