"""What applications and services read to verify tokens and to find the endpoints (RFC 7517, RFC 8414)."""

from typing import Any
from urllib.parse import urlsplit

from flask import Blueprint, Response, json, request

from auth.openid.authorization_requests import PROMPTS, SCOPES
from auth.openid.clients import GRANT_TYPES
from auth.web import any_origin
from auth.web.context import latchkey
from auth.web.errors import ApiError
from auth.web.html.page import LANGUAGES

_KEYS_AGE, _METADATA_AGE = 300, 600  # seconds
_CLAIMS = [
    "sub", "iss", "aud", "exp", "iat", "auth_time", "nonce", "acr", "amr",
    "name", "preferred_username", "picture", "locale", "updated_at",
    "email", "email_verified", "phone_number", "phone_number_verified", "groups", "roles",
]  # fmt: skip

blueprint = Blueprint("discovery", __name__)


@blueprint.get("/.well-known/jwks.json")
@any_origin
def jwks() -> Response:
    """Return the public keys that verify access tokens and ID tokens (RFC 7517)."""
    of_openid = latchkey.openid_keys.published()
    keys = [key.public_jwk for key in (*latchkey.access_tokens.keys, *(of_openid or ())) if key.public_jwk]
    # Without the database they are not known, so the set is not complete.
    return _cached({"keys": keys}, 0 if of_openid is None else _KEYS_AGE)


@blueprint.get("/.well-known/openid-configuration")
@any_origin
def openid_configuration() -> Response:
    """Return the endpoints of the OpenID provider (OpenID Connect Discovery 1.0)."""
    return _cached(_metadata(), _METADATA_AGE)


@blueprint.get("/.well-known/oauth-authorization-server")
@any_origin
def oauth_metadata() -> Response:
    """Return the same as metadata of an authorization server (RFC 8414)."""
    return _cached(_metadata(), _METADATA_AGE)


@blueprint.get("/.well-known/openid-configuration/<path:issuer_path>")
@blueprint.get("/.well-known/oauth-authorization-server/<path:issuer_path>")
@any_origin
def metadata_of_path(issuer_path: str) -> Response:
    """Return the metadata where clients look for that of an issuer with a path (RFC 8414, section 3.1)."""
    if issuer_path != urlsplit(latchkey.settings.jwt_issuer).path.strip("/"):
        raise ApiError("not_found")
    return _cached(_metadata(), _METADATA_AGE)


def _metadata() -> dict[str, Any]:
    settings = latchkey.settings
    base_url = settings.base_url
    common = {"issuer": settings.jwt_issuer, "jwks_uri": f"{base_url}/.well-known/jwks.json"}
    if not settings.oauth_server:
        return common
    by_secret = ["client_secret_basic", "client_secret_post"]
    registration = f"{base_url}/oauth/clients/register"
    return common | {
        "authorization_endpoint": f"{base_url}/oauth/authorize",
        "token_endpoint": f"{base_url}/oauth/token",
        "userinfo_endpoint": f"{base_url}/oauth/userinfo",
        "revocation_endpoint": f"{base_url}/oauth/revoke",
        "introspection_endpoint": f"{base_url}/introspect",
        **({"end_session_endpoint": f"{base_url}/oauth/logout"} if settings.pages else {}),
        **({"registration_endpoint": registration} if settings.oauth_dynamic_registration else {}),
        "scopes_supported": SCOPES,
        "response_types_supported": ["code"],
        "response_modes_supported": ["query"],
        "grant_types_supported": GRANT_TYPES,
        "subject_types_supported": ["public"],
        "acr_values_supported": ["aal1", "aal2"],
        "id_token_signing_alg_values_supported": latchkey.client_tokens.id_token_algorithms(),
        "token_endpoint_auth_methods_supported": [*by_secret, "none"],
        "revocation_endpoint_auth_methods_supported": [*by_secret, "none"],
        "introspection_endpoint_auth_methods_supported": [*by_secret, "Bearer"],
        "code_challenge_methods_supported": ["S256"],
        "authorization_response_iss_parameter_supported": True,
        "prompt_values_supported": PROMPTS,
        "ui_locales_supported": [*LANGUAGES],
        "claims_supported": list(dict.fromkeys([*_CLAIMS, *settings.id_claims])),
        "claims_parameter_supported": False,
        "request_parameter_supported": False,
        "request_uri_parameter_supported": False,
    }


def _cached(body: dict[str, Any], age: int) -> Response:
    response = Response(json.dumps(body), mimetype="application/json")
    response.headers["Cache-Control"] = f"public, max-age={age}"
    response.add_etag()
    response.make_conditional(request)
    # gunicorn adds it.
    del response.headers["Date"]
    return response
