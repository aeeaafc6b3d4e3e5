"""The audience of a client's access token is never a client, which would take the token for an ID token."""

import uuid

import pytest
from joserfc import jwt
from joserfc.errors import InvalidClaimError
from joserfc.jwk import KeySet

from tests.support.cases import cases
from tests.support.environment import BASE_URL
from tests.support.openid import (
    RESOURCE,
    answer,
    assert_refused,
    authorize_path,
    claims_of,
    granted_code,
    insert_client,
    make_client,
    tokens_of,
)

AUDIENCE, ISSUER, SERVICE = "https://app.example.com", "https://issuer.example", "https://a.example/auth/v1"
OURS = f"""
{uuid.uuid4()} {AUDIENCE} {ISSUER} {ISSUER}/oauth/userinfo {SERVICE} {SERVICE}/ {SERVICE}/oauth/token
{AUDIENCE}/ {ISSUER}/ {SERVICE}/anything?x https://A.example:443/auth/v1/user https://user@a.example/auth/v1/user
""".split()  # the first one as any client's id
NOT_OURS = [
    RESOURCE,
    "urn:example:api",
    f"{AUDIENCE}/api",
    "https://a.example/api",
    "https://a.example/auth/v10",
]


@pytest.fixture
def http(make_app):
    settings = {"AUTH_JWT_AUDIENCE": AUDIENCE, "AUTH_JWT_ISSUER": ISSUER, "AUTH_BASE_URL": SERVICE}
    return make_app(**settings).test_client()


class TestResource:
    @cases("resource", OURS)
    def test_resource_that_is_a_client_or_of_this_service_is_refused_to_a_client_that_may_ask_for_any(
        self, http, database, resource
    ):
        path = authorize_path(insert_client(database, is_dynamic=True), resource=resource)
        assert answer(http.get(path).headers["Location"])["error"] == "invalid_target"
        assert database.count("oauth_requests") == 0

    @cases("resource", OURS)
    def test_resource_that_has_become_a_client_or_ours_gets_no_token(self, http, database, alice, resource):
        """A setting has changed since; for each grant."""
        app_client, session = make_client(database), alice.open_session(client=http)
        code = granted_code(database, app_client, session, resource=resource)
        assert_refused(app_client.redeem(http, code), "invalid_target")
        # The code is not spent.
        spent = "SELECT count(opened_session_id) FROM oauth_requests WHERE resource = %(resource)s"
        assert database.value(spent, resource=resource) == 0
        tokens = tokens_of(http, database, app_client, alice)
        database.run(
            "UPDATE sessions SET resource = %(resource)s WHERE grant_id IS NOT NULL", resource=resource
        )
        assert_refused(app_client.refresh(http, tokens["refresh_token"]), "invalid_target")
        service = make_client(
            database, grant_types=["client_credentials"], scopes=["read"], resources=[resource]
        )
        form = {"grant_type": "client_credentials", "resource": resource}
        assert_refused(service.post(http, "/oauth/token", **form), "invalid_target")

    @cases("resource", NOT_OURS)
    def test_resource_of_another_service_is_the_audience(self, http, database, alice, resource):
        tokens = tokens_of(http, database, make_client(database), alice, resource=resource)
        assert claims_of(tokens["access_token"])["aud"] == resource


def test_library_that_verifies_id_tokens_refuses_an_access_token(client, database, alice):
    app_client = make_client(database, id_token_signed_response_alg="ES256")
    tokens = tokens_of(client, database, app_client, alice)
    keys = KeySet.import_key_set(client.get("/.well-known/jwks.json").json)
    registry = jwt.JWTClaimsRegistry(
        iss={"essential": True, "value": BASE_URL}, aud={"essential": True, "value": app_client.id}
    )
    registry.validate(jwt.decode(tokens["id_token"], keys).claims)
    with pytest.raises(InvalidClaimError, match="aud"):
        registry.validate(jwt.decode(tokens["access_token"], keys).claims)
