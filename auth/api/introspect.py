from contextlib import suppress
from typing import Any

from flask import Blueprint, Response, jsonify

from auth.core.tokens.access_tokens import LACKS_STEP, SECOND_STEP
from auth.core.tokens.jws import InvalidAccessToken
from auth.domain.sign_in import api_key_tokens
from auth.openid import oauth_errors
from auth.openid.authentication import ClientInput, authenticate, read_credentials
from auth.openid.oauth_errors import OAuthError, invalid_client
from auth.web import Level, accepts_forms, fields, guard, schemas, takes_tokens
from auth.web.context import latchkey
from auth.web.input import read_body
from sql import queries

blueprint = Blueprint("introspect", __name__)
blueprint.register_error_handler(OAuthError, oauth_errors.answer)
_OfClient = ClientInput.of(token=fields.LongText(required=True))


@blueprint.post("/introspect")
@accepts_forms
@takes_tokens
@guard.introspector
def introspect() -> Response:
    """Return the claims of an access token if it is valid at this moment (RFC 7662)."""
    if guard.sends_client_credentials():
        body = read_body(_OfClient())
        credentials = read_credentials(body)
        client = authenticate(credentials)
        if credentials.secret_hash is None:
            raise invalid_client("public clients cannot introspect tokens")
    else:
        body, client = read_body(schemas.Introspection()), None
    claims = _of_client(body["token"], client)
    if claims is None and (client is None or client.introspects_sessions):
        claims = _of_session(body["token"]) or _of_api_key(body["token"])
    # Last, because a setting or a hook may have added a claim of this name.
    return jsonify((claims or {}) | {"active": claims is not None})


def _of_session(token: str) -> dict[str, Any] | None:
    try:
        caller = latchkey.access_tokens.verify(token)
    except InvalidAccessToken:
        return None
    # Refuses tokens from before the user verified a factor too, which look complete.
    needs_step = latchkey.settings.mfa_tokens == SECOND_STEP or caller.aal == LACKS_STEP
    level = Level.AAL1 if needs_step else Level.SESSION
    row = queries.select_user(latchkey.db, **guard.caller(level, of=caller))
    if row is None or row.aal is None or row.state != "live":
        return None
    # A session loses the level that came from a removed factor.
    return latchkey.access_tokens.claims_now(token, row.user_object) | {"aal": min(caller.aal, row.aal)}


def _of_api_key(token: str) -> dict[str, Any] | None:
    """Return what an API key stands for, or the claims of its access token, or None."""
    if latchkey.settings.api_keys:
        with suppress(InvalidAccessToken):
            return api_key_tokens.introspect(token) or api_key_tokens.introspect_token(token)
    return None


def _of_client(token: str, asking: Any) -> dict[str, Any] | None:
    """Return the claims of a client's access token that `asking`, a client or None for the key, may see."""
    try:
        caller = latchkey.client_tokens.verify(token)
    except InvalidAccessToken:
        return None
    if asking and caller.client_id != asking.id and caller.audience not in asking.resources:
        return None
    row = queries.select_client_token(latchkey.db, **caller.parameters)
    if row is None or row.state != "live":
        return None
    claims = latchkey.client_tokens.claims(token)
    return claims | ({"acr": min(claims["acr"], row.aal)} if row.aal else {})
