"""GET /.well-known/…, /openapi.yaml and /; test_pages.py tests the welcome page."""

import json

from tests.support.answers import assert_ok
from tests.support.contract import OPENAPI, description
from tests.tokens.test_access_tokens import private_jwk

CACHED = "public, max-age=300"
METADATA = "/.well-known/oauth-authorization-server"


def test_jwk_set_has_the_public_part_of_each_key(client, state_dir):
    (private,) = json.loads((state_dir / "jwt_keys.json").read_text())["keys"]
    public = {name: private[name] for name in ("kty", "crv", "x", "y", "kid")}
    response = client.get("/.well-known/jwks.json")
    assert_ok(response, {"keys": [public | {"alg": "ES256", "use": "sig"}]})
    assert response.headers["Cache-Control"] == CACHED


def test_jwk_set_has_no_private_members(make_app):
    keys = [private_jwk(kind, kid=kind) for kind in ("ES256", "EdDSA", "RS256")]
    client = make_app(AUTH_JWT_KEYS=json.dumps({"keys": keys})).test_client()
    response = client.get("/.well-known/jwks.json")
    assert [key["kid"] for key in response.json["keys"]] == ["ES256", "EdDSA", "RS256"]
    for private, public in zip(keys, response.json["keys"], strict=True):
        for member in {"d", "p", "q", "dp", "dq", "qi", "k"} & set(private):
            assert member not in public
            assert private[member] not in response.text


def test_metadata_names_only_what_an_oauth_client_can_use(client, service_role, alice):
    metadata = client.get(METADATA).json
    assert metadata == {
        "issuer": "http://localhost:8000",
        "jwks_uri": "http://localhost:8000/.well-known/jwks.json",
        "introspection_endpoint": "http://localhost:8000/introspect",
        "introspection_endpoint_auth_methods_supported": ["Bearer"],
    }
    assert client.get(metadata["jwks_uri"]).status_code == 200
    body = {"token": alice.sign_in().access_token}
    introspected = client.post(metadata["introspection_endpoint"], json=body, headers=service_role)
    assert introspected.json["active"]
    assert client.get("/.well-known/openid-configuration").status_code == 404


def test_metadata_has_the_configured_urls_and_not_the_host_header(make_app):
    settings = {"AUTH_BASE_URL": "https://auth.example.com/", "AUTH_JWT_ISSUER": "https://issuer.example"}
    evil = {"Host": "evil.example", "X-Forwarded-Host": "evil.example"}
    metadata = make_app(**settings).test_client().get(METADATA, headers=evil).json
    assert metadata["issuer"] == "https://issuer.example"
    assert metadata["introspection_endpoint"] == "https://auth.example.com/introspect"
    assert "evil" not in str(metadata)


def test_description_is_served_unchanged(client):
    response = client.get("/openapi.yaml")
    assert (response.status_code, response.data) == (200, OPENAPI.read_bytes())
    assert response.mimetype == "application/yaml"
    assert response.headers["Cache-Control"] == CACHED
    assert description()["openapi"].startswith("3.0.")
