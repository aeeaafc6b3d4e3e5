"""AUTH_SERVICE_ROLE_JWT: JWTs of a service role instead of the service role key."""

import json
import time
from datetime import datetime, timedelta

import jwt
import pytest

from tests.core.tokens.test_access_tokens import HS_SECRET, OCT, encode, private_jwk
from tests.support.answers import assert_error
from tests.support.cases import cases

NOW = int(time.time())
SIGNING = private_jwk("ES256", kid="signing")
OLD = private_jwk("ES256", kid="old", key_ops=["verify"])


def service_jwt(key=HS_SECRET, algorithm="HS256", headers=None, role="service_role", **claims):
    return jwt.encode({"role": role, **claims}, key, algorithm, headers)


def jwt_signed_by(jwk, **claims):
    key = jwt.PyJWK({name: value for name, value in jwk.items() if name != "key_ops"}).key
    return service_jwt(key, "HS256" if jwk["kty"] == "oct" else "ES256", {"kid": jwk["kid"]}, **claims)


def bearer(token):
    return {"Authorization": f"Bearer {token}"}


@pytest.fixture
def client(make_app):
    keys = json.dumps([SIGNING, OCT, OLD])
    app = make_app(AUTH_SERVICE_ROLE_JWT="true", AUTH_JWT_SECRET=HS_SECRET, AUTH_JWT_KEYS=keys)
    return app.test_client()


def recorded_uses(database):
    rows = database.all(
        "SELECT actor, details FROM audit_log WHERE action = 'service_role_jwt_used' ORDER BY at"
    )
    return [(row.actor, row.details) for row in rows]


class TestAccepted:
    @cases(
        ("token", "details"),
        [
            (service_jwt(), {}),
            (service_jwt(role="supabase_admin"), {"role": "supabase_admin"}),
            (service_jwt(exp=NOW + 3600, nbf=NOW - 5, iss="supabase", iat=NOW + 9), {}),
            (service_jwt(headers={"typ": "anything"}), {}),
            (jwt_signed_by(SIGNING), {"kid": "signing"}),
            (jwt_signed_by(OCT), {"kid": "shared"}),
        ],
    )
    def test_token_counts_as_the_key_and_is_audited(self, client, database, token, details):
        response = client.post("/introspect", json={"token": "x"}, headers=bearer(token))
        assert response.status_code == 200
        assert recorded_uses(database)[-1] == ("service_role", {"role": "service_role"} | details)

    def test_token_in_apikey_counts_without_authorization(self, client):
        assert client.get("/admin/users", headers={"apikey": service_jwt()}).status_code == 200

    def test_clock_is_that_of_the_database(self, client, monkeypatch):
        class Slow(datetime):
            @classmethod
            def now(cls, tz=None):
                return super().now(tz) - timedelta(hours=2)

        monkeypatch.setattr("jwt.api_jwt.datetime", Slow)
        assert client.get("/admin/users", headers=bearer(service_jwt(nbf=NOW - 60))).status_code == 200
        assert client.get("/admin/users", headers=bearer(service_jwt(exp=NOW - 60))).status_code == 401

    def test_opaque_key_wins_in_either_header(self, client, service_role, database):
        key = service_role["Authorization"].removeprefix("Bearer ")
        for headers in ({"apikey": key, **bearer(service_jwt())}, {"apikey": service_jwt(), **service_role}):
            assert client.post("/introspect", json={"token": "x"}, headers=headers).status_code == 200
        assert recorded_uses(database) == []


class TestRefused:
    @cases(
        "token",
        [
            *(service_jwt(role=role) for role in ("authenticated", "anon", None, ["service_role"])),
            *(
                service_jwt(**claim)
                for claim in ({"exp": NOW - 5}, {"nbf": NOW + 3600}, {"exp": NOW + 3600.5})
            ),
            service_jwt(exp=10**30),
            service_jwt(key=HS_SECRET * 2),
            service_jwt(headers={"kid": "unknown"}),
            jwt_signed_by(OLD),
            f"{encode({'alg': 'none'})}.{encode({'role': 'service_role'})}.",
            jwt.PyJWS().encode(b'{"role": "service_role", "exp": 1e999}', HS_SECRET, "HS256"),
            f"{service_jwt()}=",
            "garbage",
        ],
    )
    def test_other_token_is_401(self, client, database, token):
        for headers in (bearer(token), {"apikey": token}):
            assert client.get("/admin/users", headers=headers).status_code == 401
        assert recorded_uses(database) == []

    def test_authorization_of_a_user_decides_over_a_token_in_apikey(self, client, alice):
        session = alice.sign_in(client=client)
        headers = {"apikey": service_jwt(), **session.authorization}
        assert_error(client.get("/admin/users", headers=headers), 403, "not_admin")

    def test_token_is_401_by_default_and_never_an_access_token(self, make_app, client):
        default = make_app(AUTH_JWT_SECRET=HS_SECRET).test_client()
        assert_error(default.get("/admin/users", headers=bearer(service_jwt())), 401, "bad_jwt")
        assert_error(client.get("/user", headers=bearer(service_jwt())), 401, "bad_jwt")
