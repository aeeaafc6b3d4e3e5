"""POST /oauth/token with grant_type=client_credentials: a client on its own behalf (RFC 6749, section 4.4)."""

import pytest

from tests.support.answers import A_UUID, AN_ACCESS_TOKEN, assert_ok
from tests.support.openid import RESOURCE, USERINFO, Client, assert_refused, bearer, claims_of, make_client

GRANT = "client_credentials"


@pytest.fixture
def service(database) -> Client:
    return make_client(database, grant_types=[GRANT], scopes=["read", "write"], resources=[RESOURCE])


@pytest.fixture
def request_token(client, service):
    return lambda **form: service.post(client, "/oauth/token", grant_type=GRANT, **form)


def test_client_gets_an_access_token_and_nothing_else(database, service, request_token):
    before = database.everything()
    answer = request_token()
    expected = {"access_token": AN_ACCESS_TOKEN, "token_type": "bearer", "expires_in": 3600}
    assert_ok(answer, expected | {"scope": "read write"})
    claims = claims_of(answer.json["access_token"])
    assert claims.pop("exp") == claims.pop("iat") + 3600
    of_client = {"sub": service.id, "client_id": service.id, "aud": USERINFO, "jti": A_UUID}
    assert claims == of_client | {"iss": "http://localhost:8000", "scope": "read write"}
    assert database.everything() == before


def test_scope_and_resource_are_among_the_clients(request_token):
    answer = request_token(scope="write", resource=RESOURCE).json
    claims = claims_of(answer["access_token"])
    assert (answer["scope"], claims["scope"], claims["aud"]) == ("write", "write", RESOURCE)
    for scope in ("read write openid", "admin", "READ"):
        assert_refused(request_token(scope=scope), "invalid_scope")
    for resource in ("https://other.example/", "authenticated", RESOURCE + "x"):
        assert_refused(request_token(resource=resource), "invalid_target")


def test_client_needs_the_grant_type_and_its_secret(client, database, service):
    user_facing, form = make_client(database), {"grant_type": GRANT}
    assert_refused(user_facing.post(client, "/oauth/token", **form), "unauthorized_client")
    for method in ("client_secret_basic", "client_secret_post"):
        imposter = Client(service.id, "wrong", method)
        assert_refused(imposter.post(client, "/oauth/token", **form), "invalid_client", 401)
    public = make_client(database, token_endpoint_auth_method="none")
    assert_refused(public.post(client, "/oauth/token", **form), "unauthorized_client")


def test_token_of_a_client_opens_no_route_of_users(client, database, request_token):
    database.run("UPDATE oauth_clients SET scopes = '{openid,email}'")
    headers = bearer(request_token().json["access_token"])
    assert_refused(client.get("/oauth/userinfo", headers=headers), "invalid_token", 401)
    assert client.get("/user", headers=headers).status_code == 403
