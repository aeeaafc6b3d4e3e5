"""Clients at POST /introspect."""

from flask import request

from auth.extensions.openid.authentication import ClientInput, authenticate, read_credentials
from auth.extensions.openid.oauth_errors import invalid_client
from auth.web import fields
from auth.web.context import latchkey
from auth.web.input import read_body
from sql import queries

_OfClient = ClientInput.of(token=fields.LongText(required=True))


def read_request() -> "tuple[str, queries.SelectClient]":
    """Return the token of a client's request, and the client's row. Raises `OAuthError`."""
    body = read_body(_OfClient)
    credentials = read_credentials(latchkey.settings, body, request.headers.get("Authorization", ""))
    client = authenticate(latchkey, credentials)
    if credentials.secret_hash is None:
        raise invalid_client("public clients cannot introspect tokens")
    return body["token"], client
