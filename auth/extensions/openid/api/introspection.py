"""Clients at POST /introspect, and which of their access tokens are good now."""

from typing import Any

from auth.core.tokens.client_tokens import ClientCaller
from auth.core.tokens.jws import InvalidAccessToken
from auth.extensions.openid.authentication import ClientInput, authenticate, read_credentials
from auth.extensions.openid.memberships import still_said
from auth.extensions.openid.oauth_errors import invalid_client
from auth.flows import facts, organizations
from auth.rules import tokens
from auth.rules.clients import Client
from auth.rules.refusals import Refusal
from auth.web import callers, fields
from auth.web.context import latchkey
from auth.web.input import read_body
from sql import queries

_OfClient = ClientInput.of(token=fields.LongText(required=True))


def read_request() -> "tuple[str, queries.SelectClient]":
    """Return the token of a client's request, and the client's row. Raises `OAuthError`."""
    body = read_body(_OfClient)
    credentials = read_credentials(body)
    client = authenticate(credentials)
    if credentials.secret_hash is None:
        raise invalid_client("public clients cannot introspect tokens")
    return body["token"], client


def claims_now(token: str, asking: "queries.SelectClient | None") -> dict[str, Any] | None:
    """Return the claims of a client's access token. Without a client, the service role key is asking."""
    try:
        caller = latchkey.client_tokens.verify(token)
    except InvalidAccessToken:
        return None
    if asking and caller.client_id != asking.id and caller.audience not in asking.resources:
        return None
    claims = latchkey.client_tokens.claims(token)
    if caller.session_id is None:
        client = queries.select_client(latchkey.db, id=caller.client_id)
        if client is None:
            return None
        known = Client(grant_types=frozenset(client.grant_types), is_blocked=client.is_blocked)
        is_good = not tokens.refusal_of_client(known, callers.moment_of(caller.expires_at), client.now)
        return claims if is_good else None
    row = queries.select_client_caller(latchkey.db, **caller.parameters)
    if row is None or row.aal is None or refusal_of(row, caller):
        return None
    # A session loses the level that came from a removed factor.
    return still_said(claims | {"acr": min(claims["acr"], row.aal)}, row)


def refusal_of(row: "queries.SelectClientCaller", known: ClientCaller) -> Refusal | None:
    """Return why the access token of a session gives nothing, or None."""
    return tokens.refusal_of_client_session(
        row,
        callers.session_of(row),
        row.resource,
        facts.client_of(row),
        callers.moment_of(known.expires_at),
        latchkey.policy,
        organizations.counting(row.memberships, row),
    )
