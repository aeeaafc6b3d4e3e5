"""GET /.well-known/…, /openapi.yaml and /; test_pages.py tests the welcome page."""

import json

from auth.extensions.openid.clients import DEVICE_CODE
from tests.core.tokens.test_access_tokens import private_jwk
from tests.support.answers import assert_error, assert_ok
from tests.support.cases import cases
from tests.support.contract import OPENAPI, description
from tests.support.environment import BASE_URL, secret

CACHED = "public, max-age=300"
METADATA = "/.well-known/oauth-authorization-server"


ISSUER = "https://auth.example.com"
METADATA_PATHS = ("/.well-known/openid-configuration", "/.well-known/oauth-authorization-server")


def test_jwk_set_has_the_public_part_of_each_key(client, parts, state_dir):
    (private,) = json.loads((state_dir / "jwt_keys.json").read_text())["keys"]
    public = {name: private[name] for name in ("kty", "crv", "x", "y", "kid")}
    (rsa,) = parts.openid_keys.make_first()
    response = client.get("/.well-known/jwks.json")
    assert_ok(response, {"keys": [public | {"alg": "ES256", "use": "sig"}, rsa.public_jwk]})
    assert rsa.public_jwk.keys() == {"kty", "n", "e", "kid", "alg", "use"}
    assert response.headers["Cache-Control"] == CACHED


def test_jwk_set_has_no_private_members(make_app):
    keys = [private_jwk(kind, kid=kind) for kind in ("ES256", "EdDSA", "RS256")]
    client = make_app(AUTH_JWT_KEYS=json.dumps({"keys": keys})).test_client()
    response = client.get("/.well-known/jwks.json")
    assert [key["kid"] for key in response.json["keys"]][:3] == ["ES256", "EdDSA", "RS256"]
    for private, public in zip(keys, response.json["keys"], strict=False):
        for member in {"d", "p", "q", "dp", "dq", "qi", "k"} & set(private):
            assert member not in public
            assert private[member] not in response.text


@cases("path", METADATA_PATHS)
def test_metadata_names_the_endpoints_of_the_oauth_server(make_app, path):
    settings = {"AUTH_BASE_URL": f"{ISSUER}/", "AUTH_JWT_ISSUER": "https://issuer.example"}
    evil = {"Host": "evil.example", "X-Forwarded-Host": "evil.example"}
    response = make_app(**settings).test_client().get(path, headers=evil)
    assert response.headers["Cache-Control"] == "public, max-age=600"
    metadata = response.json
    paths = {name: url.removeprefix(ISSUER) for name, url in metadata.items() if str(url).startswith(ISSUER)}
    assert paths == {
        "jwks_uri": "/.well-known/jwks.json",
        "authorization_endpoint": "/oauth/authorize",
        "token_endpoint": "/oauth/token",
        "userinfo_endpoint": "/oauth/userinfo",
        "revocation_endpoint": "/oauth/revoke",
        "introspection_endpoint": "/introspect",
        "end_session_endpoint": "/oauth/logout",
        "device_authorization_endpoint": "/oauth/device_authorization",
    }
    assert metadata["issuer"] == "https://issuer.example"
    assert metadata["code_challenge_methods_supported"] == ["S256"]
    assert metadata["acr_values_supported"] == ["aal1", "aal2"]
    assert metadata["id_token_signing_alg_values_supported"] == ["RS256", "ES256"]
    browserless = ["refresh_token", "client_credentials", DEVICE_CODE]
    assert metadata["grant_types_supported"] == ["authorization_code", *browserless]
    assert metadata["authorization_response_iss_parameter_supported"] is True
    unsupported = (
        "claims_parameter_supported",
        "request_parameter_supported",
        "request_uri_parameter_supported",
    )
    assert [metadata[name] for name in unsupported] == [False] * 3
    assert (metadata["response_types_supported"], metadata["response_modes_supported"]) == (
        ["code"],
        ["query"],
    )
    # Neither userinfo nor requests are signed, and no client authenticates by a key.
    assert {name for name in metadata if "signing_alg" in name} == {"id_token_signing_alg_values_supported"}
    assert "evil" not in response.text


@cases(
    ("changes", "members"),
    [
        (
            {"AUTH_OAUTH_DYNAMIC_REGISTRATION": "true"},
            {"registration_endpoint": f"{BASE_URL}/oauth/clients/register"},
        ),
        (
            {"AUTH_PAGES": "false"},
            {
                "end_session_endpoint": None,
                "device_authorization_endpoint": None,
                "grant_types_supported": ["authorization_code", "refresh_token", "client_credentials"],
            },
        ),
        ({"AUTH_JWT_SECRET": secret("jwt")}, {"id_token_signing_alg_values_supported": ["RS256"]}),
    ],
)
def test_metadata_follows_the_settings(client, make_app, changes, members):
    expected = {**client.get(METADATA).json, **members}
    metadata = make_app(**changes).test_client().get(METADATA).json
    assert metadata == {name: value for name, value in expected.items() if value is not None}


def test_metadata_names_the_issuer_and_its_keys_alone_without_the_oauth_server(make_app):
    client = make_app(AUTH_OAUTH_SERVER="false").test_client()
    for path in METADATA_PATHS:
        keys = f"{BASE_URL}/.well-known/jwks.json"
        assert_ok(client.get(path), {"issuer": BASE_URL, "jwks_uri": keys})


def test_metadata_of_an_issuer_with_a_path_is_also_below_well_known(client, make_app):
    with_path = make_app(AUTH_JWT_ISSUER=f"{ISSUER}/auth/v1").test_client()
    for path in METADATA_PATHS:
        expected = with_path.get(path).json
        assert with_path.get(f"/auth/v1{path}").json == expected
        assert_ok(with_path.get(f"{path}/auth/v1"), expected)
        for wrong_path in (f"{path}/auth", f"{path}/auth/v1/", f"{path}//auth/v1"):
            assert_error(with_path.get(wrong_path), 404, "not_found")
        assert_error(client.get(f"{path}/auth/v1"), 404, "not_found")


@cases("path", [*METADATA_PATHS, "/.well-known/jwks.json"])
def test_unchanged_documents_are_not_sent_again(client, path):
    tag = client.get(path).headers["ETag"]
    assert client.get(path).headers["ETag"] == tag
    response = client.get(path, headers={"If-None-Match": tag})
    assert (response.status_code, response.data, response.headers["ETag"]) == (304, b"", tag)
    assert client.get(path, headers={"If-None-Match": '"another"'}).status_code == 200


def test_description_is_served_unchanged(client):
    response = client.get("/openapi.yaml")
    assert (response.status_code, response.data) == (200, OPENAPI.read_bytes())
    assert response.mimetype == "application/yaml"
    assert response.headers["Cache-Control"] == CACHED
    assert description()["openapi"].startswith("3.0.")
