"""Clients at POST /introspect, and their access tokens."""

from typing import Any

from auth.core.tokens.jws import InvalidAccessToken
from auth.extensions.openid import client_callers
from auth.extensions.openid.authentication import ClientInput, authenticate, read_credentials
from auth.extensions.openid.oauth_errors import invalid_client
from auth.web import fields
from auth.web.context import latchkey
from auth.web.input import read_body
from sql import queries

_OfClient = ClientInput.of(token=fields.LongText(required=True))


def read_request() -> "tuple[str, queries.SelectClientCredentials]":
    """Return the token of a client's request, and the client's row. Raises `OAuthError`."""
    body = read_body(_OfClient())
    credentials = read_credentials(body)
    client = authenticate(credentials)
    if credentials.secret_hash is None:
        raise invalid_client("public clients cannot introspect tokens")
    return body["token"], client


def claims_now(token: str, asking: "queries.SelectClientCredentials | None") -> dict[str, Any] | None:
    """Return the claims of a client's access token. Without a client, the service role key is asking."""
    try:
        caller = latchkey.client_tokens.verify(token)
    except InvalidAccessToken:
        return None
    if asking and caller.client_id != asking.id and caller.audience not in asking.resources:
        return None
    claims = latchkey.client_tokens.claims(token)
    if caller.session_id is None:
        return claims if client_callers.is_good_without_session(caller) else None
    row = queries.select_client_caller(latchkey.db, **caller.parameters)
    if row is None or row.aal is None or client_callers.refusal_of(row, caller):
        return None
    # A session loses the level that came from a removed factor.
    return claims | {"acr": min(claims["acr"], row.aal)}
