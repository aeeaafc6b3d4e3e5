"""POST /introspect: the present state of an access token (RFC 7662)."""

import functools
from typing import Any

import pytest

from tests.support.answers import A_SENTENCE, INVALID, assert_error, assert_ok
from tests.support.api_keys import make_key, token_of
from tests.support.environment import SERVICE_ROLE_KEY
from tests.support.openid import RESOURCE, Client, assert_refused, claims_of, make_client, tokens_of
from tests.support.users import issue_token

INACTIVE = {"active": False}
OAUTH: dict[str, Any] = {"details": A_SENTENCE, "error": "invalid_request", "error_description": A_SENTENCE}


@pytest.fixture
def introspect(client, service_role):
    return lambda token: client.post("/introspect", json={"token": token}, headers=service_role)


@pytest.fixture
def send_form(client, service_role):
    """Send a form, or a body of another type."""

    def send(data, content_type="application/x-www-form-urlencoded"):
        return client.post("/introspect", data=data, content_type=content_type, headers=service_role)

    return send


class TestActiveToken:
    def test_active_token_returns_all_claims_and_nothing_changes(
        self, client, service_role, introspect, send_form, alice, database
    ):
        session = alice.open_session()
        before = database.everything()
        expected = {"active": True} | session.claims
        assert_ok(introspect(session.access_token), expected)
        form = f"token={session.access_token}&token_type_hint=access_token"
        assert_ok(send_form(form.encode()), expected)
        # Unknown members are ignored.
        body = {"token": session.access_token, "token_type_hint": "refresh_token", "active": False}
        for headers in (service_role, {"apikey": SERVICE_ROLE_KEY}):
            assert_ok(client.post("/introspect", json=body, headers=headers), expected)
        introspect("nonsense")
        assert database.everything() == before

    def test_metadata_are_returned_and_do_not_override_claims(self, introspect, client, service_role, alice):
        metadata = {"active": False, "sub": "x", "role": "admin", "x": "漢" * 2600}
        change = {"user_metadata": metadata, "app_metadata": metadata}
        client.put(f"/admin/users/{alice.id}", json=change, headers=service_role)
        answer = introspect(alice.sign_in().access_token).json
        assert (answer["active"], answer["sub"], answer["role"]) == (True, alice.id, "authenticated")
        assert answer["user_metadata"] == metadata

    def test_claims_about_the_user_are_those_of_now(self, make_app, database, alice, service_role):
        claims = '{"roles": "app_metadata.roles", "how": "session.amr"}'
        client = make_app(AUTH_TOKEN_CLAIMS=claims, AUTH_API_KEYS="true").test_client()
        database.run('UPDATE users SET app_metadata = \'{"roles": ["editor"]}\'')
        session = alice.open_session(client)
        key_token = token_of(client, make_key(session)[1])
        body = {"role": "staff", "app_metadata": {"roles": ["reader"]}, "user_metadata": {"name": "A"}}
        assert client.put(f"/admin/users/{alice.id}", json=body, headers=service_role).status_code == 200
        for token in (session.access_token, key_token):
            answer = client.post("/introspect", json={"token": token}, headers=service_role).json
            before = claims_of(token)
            assert answer.keys() == before.keys() | {"active"}
            names = {name for name in before if answer[name] != before[name]}
            assert names == {"role", "roles", "app_metadata", "user_metadata"}
            assert (answer["role"], answer["roles"]) == ("staff", ["reader"])


class TestInactiveToken:
    """The response is inactive, without a reason."""

    def test_malformed_token_is_inactive(self, introspect, send_form):
        tokens = ["", "nonsense", "a.b.c", "x" * 32_000, SERVICE_ROLE_KEY, "é", "Bearer x"]
        for token in [*tokens, "../../etc/passwd", "eyJhbGciOiJub25lIn0.e30."]:
            assert_ok(introspect(token), INACTIVE)
        for encoded in (b"%ff", b"x" * 32_000, b"%78" * 10_000):
            assert_ok(send_form(b"token=" + encoded), INACTIVE)

    def test_forged_expired_or_other_token_is_inactive(self, introspect, alice, bob, app):
        session, bobs_session = alice.open_session(), bob.open_session()
        head, payload, signature = session.access_token.split(".")
        issue = functools.partial(issue_token, app)
        issued_at = session.claims["iat"]
        for token in (
            f"{head}.{payload}.{signature[:-4]}AAAA",
            f"{head}.{payload}.",
            f"{head}.{payload}",
            f"{payload}.{payload}.{signature}",
            session.refresh_token,
            issue(session.user, session.id, issued_at - 3601),
            issue(session.user, bobs_session.id, issued_at),
        ):
            assert_ok(introspect(token), INACTIVE)
        assert introspect(issue(session.user, session.id, issued_at)).json["active"] is True

    def test_token_of_an_ended_session_or_deleted_user_is_inactive(self, introspect, alice, database):
        for change in (
            "UPDATE sessions SET ended_at = now(), end_reason = 'logout'",
            "UPDATE sessions SET refreshed_at = now() - interval '30 days'",
            "DELETE FROM sessions",
            "UPDATE users SET banned_until = now() + interval '1 minute'",
            "DELETE FROM users",
        ):
            database.run("UPDATE users SET banned_until = NULL")
            token = alice.open_session().access_token
            assert introspect(token).json["active"] is True
            database.run(change)
            assert_ok(introspect(token), INACTIVE)


class TestRefusals:
    def test_malformed_body_or_form_is_400(self, client, service_role, send_form):
        for token in (None, 1, ["x"]):
            response = client.post("/introspect", json={"token": token}, headers=service_role)
            assert_error(response, *INVALID, **OAUTH)
        for form in (b"", b"x=y", b"token=a&token=b", b"token=%00"):
            assert_error(send_form(form), *INVALID, **OAUTH)

    def test_oversized_form_is_refused(self, send_form):
        message = "The body is larger than 32 KiB"
        members = {"error": "invalid_request", "error_description": message}
        response = send_form(b"token=" + b"x" * 32 * 1024)
        assert_error(response, 413, "request_entity_too_large", message, **members)
        assert_error(send_form(b"token=x" + b"&x=" * 100), 400, "bad_json", **OAUTH)


class TestClients:
    """Clients authenticate by HTTP Basic or in the form, and see tokens that concern them."""

    @pytest.fixture
    def token_and_owner(self, client, database, alice):
        """The access token of a client for a resource, and this client, its owner."""
        owner = make_client(database)
        return tokens_of(client, database, owner, alice, resource=RESOURCE)["access_token"], owner

    def test_client_sees_its_own_tokens_and_those_for_its_resources(
        self, client, database, token_and_owner, introspect
    ):
        token, owner = token_and_owner
        expected = {"active": True} | claims_of(token)
        before = database.everything()
        assert_ok(introspect(token), expected)
        assert_ok(owner.post(client, "/introspect", token=token, token_type_hint="x"), expected)
        assert database.everything() == before
        for method in ("client_secret_basic", "client_secret_post"):
            api = make_client(database, resources=[RESOURCE], token_endpoint_auth_method=method)
            assert_ok(api.post(client, "/introspect", token=token), expected)
        without_slash = make_client(database, resources=[RESOURCE.removesuffix("/")])
        assert_ok(without_slash.post(client, "/introspect", token=token), expected)
        stranger = make_client(database, resources=[owner.id, f"{RESOURCE}x"], introspects_sessions=True)
        assert_ok(stranger.post(client, "/introspect", token=token), INACTIVE)
        response = client.post("/introspect", json={"token": token}, headers=owner.basic)
        assert_ok(response, expected)

    def test_client_sees_sessions_only_if_it_was_created_for_that(self, client, database, alice):
        session = alice.open_session()
        for introspects_sessions, expected in ((False, INACTIVE), (True, {"active": True} | session.claims)):
            api = make_client(database, introspects_sessions=introspects_sessions)
            assert_ok(api.post(client, "/introspect", token=session.access_token), expected)
            for other in (session.refresh_token, "nonsense"):
                assert_ok(api.post(client, "/introspect", token=other), INACTIVE)

    def test_token_of_client_credentials_is_active_until_the_client_changes(
        self, client, database, introspect
    ):
        service = make_client(database, grant_types=["client_credentials"], scopes=["read"])
        token = service.post(client, "/oauth/token", grant_type="client_credentials").json["access_token"]
        for answer in (introspect(token), service.post(client, "/introspect", token=token)):
            assert_ok(answer, {"active": True} | claims_of(token))
        for change in (
            "UPDATE oauth_clients SET grant_types = '{refresh_token}'",
            "DELETE FROM oauth_clients",
        ):
            database.run(change)
            assert_ok(introspect(token), INACTIVE)

    def test_other_tokens_of_clients_and_ended_ones_are_inactive(
        self, client, database, parts, token_and_owner, introspect
    ):
        token, owner = token_and_owner
        claims = claims_of(token)
        members = {name: claims[name] for name in ("sub", "aud", "client_id", "scope", "session_id")}
        expired_token = parts.client_tokens.issue(members, issued_at=claims["iat"] - 3600, lifetime=3600)
        refresh_token = parts.client_refresh_tokens.make(claims["session_id"], 0)
        foreign_token = parts.client_tokens.issue(
            members | {"client_id": make_client(database).id}, issued_at=claims["iat"], lifetime=60
        )
        for other in (expired_token, refresh_token, foreign_token):
            assert_ok(introspect(other), INACTIVE)
        owner.post(client, "/oauth/revoke", token=token)
        for answer in (introspect(token), owner.post(client, "/introspect", token=token)):
            assert_ok(answer, INACTIVE)

    def test_client_that_does_not_authenticate_is_refused(self, client, database, token_and_owner):
        token, owner = token_and_owner
        public = make_client(database, token_endpoint_auth_method="none")
        for imposter in (Client(owner.id, "wrong"), Client(owner.id, None, "none"), public):
            assert_refused(imposter.post(client, "/introspect", token=token), "invalid_client", 401)
        # Credentials in JSON are no credentials here.
        body = {"client_id": owner.id, "client_secret": owner.secret, "token": token}
        assert_error(client.post("/introspect", json=body), 401, "no_authorization", details=A_SENTENCE)

    def test_only_the_service_role_key_introspects_without_the_oauth_server(self, make_app, database):
        client, api = make_app(AUTH_OAUTH_SERVER="false").test_client(), make_client(database)
        assert api.post(client, "/introspect", token="x").status_code == 401
