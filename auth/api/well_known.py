"""The documents by which clients verify tokens, find endpoints (RFC 7517, RFC 8414) and use passkeys."""

from urllib.parse import urlsplit

from flask import Blueprint, Response, json, request

from auth.core.json_bodies import JsonObject
from auth.core.keys.openid_keys import public_jwks
from auth.web import any_origin
from auth.web.context import latchkey
from auth.web.errors import ApiError

_KEYS_AGE, _METADATA_AGE = 300, 600  # seconds

blueprint = Blueprint("discovery", __name__)


@blueprint.get("/.well-known/jwks.json")
@any_origin
def jwks() -> Response:
    """Return the public keys that verify access tokens and ID tokens (RFC 7517)."""
    of_openid = latchkey.openid_keys.published()
    keys = public_jwks(*latchkey.access_tokens.keys, *(of_openid or ()))
    # Without the database the keys are unknown, and the set would be incomplete.
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
    """Return the metadata at the URL for an issuer with a path (RFC 8414, section 3.1)."""
    if issuer_path != urlsplit(latchkey.settings.jwt_issuer).path.strip("/"):
        raise ApiError("not_found")
    return _cached(_metadata(), _METADATA_AGE)


@blueprint.get("/.well-known/apple-app-site-association")
def apple_apps() -> Response:
    """Name the applications on iOS and macOS that may use the passkeys of this domain."""
    if not (apps := latchkey.settings.webauthn_apple_apps):
        raise ApiError("not_found")
    return _cached({"webcredentials": {"apps": apps}}, _METADATA_AGE)


@blueprint.get("/.well-known/assetlinks.json")
def android_apps() -> Response:
    """Name the applications on Android that may use the passkeys of this domain."""
    if not (apps := latchkey.settings.webauthn_android_apps):
        raise ApiError("not_found")
    named = [app.partition("/") for app in apps]
    links = [
        {
            "relation": ["delegate_permission/common.get_login_creds"],
            "target": {
                "namespace": "android_app",
                "package_name": package,
                "sha256_cert_fingerprints": [of for name, _, of in named if name == package],
            },
        }
        for package in dict.fromkeys(name for name, _, _ in named)
    ]
    return _cached(links, _METADATA_AGE)


def _metadata() -> JsonObject:
    settings = latchkey.settings
    metadata = {"issuer": settings.jwt_issuer, "jwks_uri": f"{settings.base_url}/.well-known/jwks.json"}
    for extension in latchkey.extensions:
        metadata |= extension.metadata()
    return metadata


def _cached(body: JsonObject | list[JsonObject], age: int) -> Response:
    response = Response(json.dumps(body), mimetype="application/json")
    response.headers["Cache-Control"] = f"public, max-age={age}"
    response.add_etag()
    response.make_conditional(request)
    # gunicorn adds it.
    del response.headers["Date"]
    return response
