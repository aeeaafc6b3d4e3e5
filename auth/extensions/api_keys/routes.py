from contextlib import suppress
from typing import Any

from flask import Blueprint, Response, jsonify
from flask.typing import ResponseReturnValue

from auth.core.tokens.jws import InvalidAccessToken
from auth.flows.account import api_keys
from auth.flows.sign_in import api_key_tokens
from auth.web import Level, asks_more, audited, fields, guard, schemas
from auth.web.asked import current_asked
from auth.web.input import canonical_id, read_body
from auth.web.limits import limited
from sql import queries

blueprint = Blueprint("api_keys", __name__)

_ApiKeyGrant = schemas.Input.of(api_key=fields.Text(required=True))


class _NewApiKey(schemas.Reauthentication):
    name = fields.Name(required=True)
    expires_in = fields.Lifetime()
    scopes = fields.KeyScopes(load_default=list)


@blueprint.post("/user/api_keys")
@guard.access_token(Level.PROOF)
@limited("add_api_key", key=guard.caller_on_network)
@audited("change_refused")
def add_api_key() -> ResponseReturnValue:
    current_asked().live_caller()
    return jsonify(api_keys.add(current_asked(), read_body(_NewApiKey))), 201


@blueprint.get("/user/api_keys")
@guard.access_token(Level.AAL1)
def list_api_keys() -> Response:
    return jsonify(api_keys.own(current_asked()))


@blueprint.delete("/user/api_keys/<api_key_id>")
@guard.access_token(Level.SESSION)
@limited("remove", key=guard.caller_on_network)
@audited("change_refused")
@asks_more
def delete_api_key(api_key_id: str) -> Response:
    api_keys.remove(current_asked(), canonical_id(api_key_id, "api_key_not_found"))
    return Response(status=204)


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
