"""API keys at POST /token and POST /introspect."""

from contextlib import suppress
from typing import Any

from flask import Response, jsonify

from auth.core.tokens.jws import InvalidAccessToken
from auth.flows.sign_in import api_key_tokens
from auth.web import audited, fields, schemas
from auth.web.asked import current_asked
from auth.web.input import read_body
from auth.web.limits import limited
from sql import queries

_ApiKeyGrant = schemas.Input.of(api_key=fields.Text(required=True))


@limited("exchange_api_key")
@audited("sign_in_refused", sign_in="api_key")
def sign_in_with_api_key() -> Response:
    return jsonify(api_key_tokens.exchange(current_asked(), read_body(_ApiKeyGrant)["api_key"]))


def claims_now(token: str, client: "queries.SelectClient | None") -> dict[str, Any] | None:
    """Return the claims of an API key or of its access token, or None."""
    asked = current_asked()
    if client is None or client.introspects_sessions:
        with suppress(InvalidAccessToken):
            return api_key_tokens.introspect(asked, token) or api_key_tokens.introspect_token(asked, token)
    return None
