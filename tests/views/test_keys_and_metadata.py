"""GET /.well-known/…, /openapi.yaml and /."""

import json

import yaml

from auth import __version__
from tests.support.answers import assert_ok
from tests.support.contract import OPENAPI
from tests.tokens.test_access_tokens import private_jwk

CACHED = "public, max-age=300"


class TestJwkSet:
    def test_jwk_set_has_the_public_part_of_each_key(self, client, state_dir):
        (private,) = json.loads((state_dir / "jwt_keys.json").read_text())["keys"]
        public = {name: private[name] for name in ("kty", "crv", "x", "y", "kid")}
        response = client.get("/.well-known/jwks.json")
        assert_ok(response, {"keys": [public | {"alg": "ES256", "use": "sig"}]})
        assert response.headers["Cache-Control"] == CACHED

    def test_jwk_set_has_no_private_members(self, make_app):
        keys = [private_jwk(kind, kid=kind) for kind in ("ES256", "EdDSA", "RS256")]
        response = (
            make_app(AUTH_JWT_KEYS=json.dumps({"keys": keys})).test_client().get("/.well-known/jwks.json")
        )
        assert [key["kid"] for key in response.json["keys"]] == ["ES256", "EdDSA", "RS256"]
        for private, public in zip(keys, response.json["keys"], strict=True):
            for member in {"d", "p", "q", "dp", "dq", "qi", "k"} & set(private):
                assert member not in public
                assert private[member] not in response.text


class TestMetadata:
    def test_metadata_describes_the_service(self, client):
        expected = {
            "issuer": "http://localhost:8000",
            "token_endpoint": "http://localhost:8000/token",
            "jwks_uri": "http://localhost:8000/.well-known/jwks.json",
            "token_endpoint_auth_methods_supported": ["none"],
            "service_documentation": "http://localhost:8000/docs",
        }
        metadata = client.get("/.well-known/oauth-authorization-server").json
        assert {name: metadata[name] for name in expected} == expected
        assert {"password", "refresh_token"} <= set(metadata["grant_types_supported"])

    def test_urls_of_the_metadata_exist(self, client):
        metadata = client.get("/.well-known/oauth-authorization-server").json
        assert client.get(metadata["jwks_uri"]).status_code == 200
        assert client.get(metadata["service_documentation"]).status_code == 200
        assert client.post(metadata["token_endpoint"]).status_code == 400

    def test_metadata_follows_the_settings_and_not_the_host_header(self, make_app):
        client = make_app(
            AUTH_BASE_URL="https://auth.example.com/", AUTH_JWT_ISSUER="https://issuer.example"
        ).test_client()
        metadata = client.get(
            "/.well-known/oauth-authorization-server",
            headers={"Host": "evil.example", "X-Forwarded-Host": "evil.example"},
        ).json
        assert metadata["issuer"] == "https://issuer.example"
        assert metadata["token_endpoint"] == "https://auth.example.com/token"
        assert "evil" not in str(metadata)


class TestOpenapi:
    def test_description_is_served_unchanged(self, client):
        response = client.get("/openapi.yaml")
        assert (response.status_code, response.data) == (200, OPENAPI.read_bytes())
        assert response.mimetype == "application/yaml"
        assert response.headers["Cache-Control"] == CACHED
        assert yaml.safe_load(response.data)["openapi"].startswith("3.0.")


class TestWelcomePage:
    def test_page_names_the_service_and_its_documentation(self, client):
        response = client.get("/")
        assert (response.status_code, response.mimetype) == (200, "text/html")
        assert "Latchkey" in response.text
        assert __version__ in response.text
        assert 'docs"' in response.text

    def test_resources_of_the_page_exist(self, client):
        for path in ("/static/page.css", "/static/welcome.js", "/auth/v1/static/page.css"):
            assert client.get(path).status_code == 200

    def test_policy_allows_only_resources_of_the_page(self, client):
        policy = dict(
            part.split(" ", 1) for part in client.get("/").headers["Content-Security-Policy"].split("; ")
        )
        assert policy["default-src"] == policy["frame-ancestors"] == policy["base-uri"] == "'none'"
        assert policy["style-src"] == policy["form-action"] == "'self'"
        assert policy.get("script-src", "'self'") == "'self'"

    def test_page_has_nothing_inline(self, client):
        text = client.get("/").text
        assert "<style" not in text
        assert "onload" not in text
        assert "<script>" not in text
