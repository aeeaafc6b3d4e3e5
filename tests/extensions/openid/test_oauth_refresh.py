"""POST /oauth/token for a refresh token: rotation, reuse, narrowing, and what ends a client's session."""

import jwt
import pytest
from authlib.oidc.core.util import create_half_hash

from tests.support.answers import A_REFRESH_TOKEN, AN_ACCESS_TOKEN, assert_error, assert_ok
from tests.support.checked_rows import statements_run
from tests.support.factors import set_up
from tests.support.openid import (
    RESOURCE,
    Client,
    assert_refused,
    bearer,
    claims_of,
    granted_code,
    make_client,
    tokens_of,
)
from tests.support.server import at_once
from tests.support.users import refresh

UNKNOWN = "Invalid Refresh Token"
PASS_TWO_MINUTES = "UPDATE sessions SET refreshed_at = refreshed_at - interval '2 minutes'"


@pytest.fixture
def tokens(client, database, app_client, alice):
    return tokens_of(client, database, app_client, alice, "openid email", resource=RESOURCE)


@pytest.fixture
def refresh_with(client, app_client):
    return lambda token, **form: app_client.refresh(client, token, **form)


class TestRotation:
    def test_refresh_rotates_and_is_no_activity_of_the_user(self, database, refresh_with, tokens):
        tables = ("users", "user_objects", "known_networks", "audit_log", "outbox", "identities")
        before = database.everything(*tables)
        answer = refresh_with(tokens["refresh_token"])
        expected = {"access_token": AN_ACCESS_TOKEN, "token_type": "bearer", "expires_in": 3600}
        expected |= {"scope": "openid email", "refresh_token": A_REFRESH_TOKEN, "id_token": AN_ACCESS_TOKEN}
        assert_ok(answer, expected)
        assert answer.json["refresh_token"] != tokens["refresh_token"]
        old, new = (claims_of(each["access_token"]) for each in (tokens, answer.json))
        assert {name for name in old if old[name] != new[name]} <= {"iat", "exp", "jti"}
        assert (set(old), old["jti"] == new["jti"]) == (set(new), False)
        assert database.everything(*tables) == before

    def test_refresh_takes_two_round_trips(self, refresh_with, tokens):
        before = statements_run()
        assert refresh_with(tokens["refresh_token"]).status_code == 200
        assert statements_run() - before == 2

    def test_used_token_returns_its_successor_and_after_a_minute_a_new_one(
        self, client, database, refresh_with, tokens
    ):
        first = tokens["refresh_token"]
        second = refresh_with(first).json["refresh_token"]
        assert refresh_with(first).json["refresh_token"] == second
        database.run(PASS_TWO_MINUTES)
        third = refresh_with(first).json["refresh_token"]
        assert third != second
        details = database.value("SELECT details FROM audit_log WHERE action = 'refresh_answer_lost'")
        assert details.keys() == {"session_id", "client_id"}
        # The token that was skipped is a copy.
        assert_refused(refresh_with(second), "invalid_grant", description=f"{UNKNOWN}: Already Used")
        for token in (first, third):
            assert_refused(refresh_with(token), "invalid_grant", description=UNKNOWN)
        userinfo = client.get("/oauth/userinfo", headers=bearer(tokens["access_token"]))
        assert userinfo.status_code == 401
        end_reason = "SELECT end_reason FROM sessions WHERE ended_at IS NOT NULL"
        assert database.all(end_reason) == [("refresh_token_reused",)]
        assert database.count("audit_log", "action = 'refresh_token_reused'") == 1

    def test_dead_token_ends_nothing_for_another_client(self, client, database, refresh_with, tokens):
        newest = refresh_with(refresh_with(tokens["refresh_token"]).json["refresh_token"])
        assert_refused(make_client(database).refresh(client, tokens["refresh_token"]), "invalid_grant")
        assert refresh_with(newest.json["refresh_token"]).status_code == 200

    def test_fifty_concurrent_refreshes_after_a_lost_response_return_one_successor(
        self, server, app_client, database, refresh_with, tokens
    ):
        refresh_with(tokens["refresh_token"])
        database.run(PASS_TWO_MINUTES)
        answers = at_once(50, lambda _: app_client.refresh(server, tokens["refresh_token"]))
        assert {answer.status_code for answer in answers} == {200}
        assert len({answer.json["refresh_token"] for answer in answers}) == 1
        assert database.count("audit_log", "action = 'refresh_answer_lost'") == 1

    def test_one_of_fifty_concurrent_refreshes_rotates(self, server, app_client, tokens):
        answers = at_once(50, lambda _: app_client.refresh(server, tokens["refresh_token"]))
        assert {answer.status_code for answer in answers} == {200}
        assert len({answer.json["refresh_token"] for answer in answers}) == 1

    def test_public_clients_tokens_rotate_in_any_case(self, make_app, database, alice):
        """RFC 9700, section 4.14.2."""
        client = make_app(AUTH_REFRESH_TOKEN_ROTATION="false").test_client()
        for method, rotates in (("client_secret_basic", False), ("none", True)):
            app_client = make_client(database, token_endpoint_auth_method=method)
            first = tokens_of(client, database, app_client, alice)["refresh_token"]
            second = app_client.refresh(client, first).json["refresh_token"]
            assert (first != second) is rotates


class TestScope:
    def test_scope_narrows_the_tokens_of_one_answer(self, client, refresh_with, tokens):
        narrow = refresh_with(tokens["refresh_token"], scope="openid").json
        assert (narrow["scope"], claims_of(narrow["access_token"])["scope"]) == ("openid", "openid")
        answer = client.get("/oauth/userinfo", headers=bearer(narrow["access_token"]))
        assert list(answer.json) == ["sub"]
        assert "email" not in claims_of(narrow["id_token"])
        assert "id_token" not in refresh_with(narrow["refresh_token"], scope="email").json
        assert refresh_with(narrow["refresh_token"]).json["scope"] == "openid email"

    def test_more_scopes_than_granted_are_refused(self, database, refresh_with, tokens):
        before = database.everything()
        for scope in ("openid email profile", "admin", "openid\xa0email"):
            assert_refused(refresh_with(tokens["refresh_token"], scope=scope), "invalid_scope")
        assert database.everything() == before


class TestIdToken:
    """OpenID Connect Core, section 12.2."""

    @pytest.mark.parametrize("algorithm", ["RS256", "ES256"])
    def test_refresh_repeats_the_sign_in_with_new_times_and_no_nonce(
        self, client, database, alice, algorithm
    ):
        app_client = make_client(database, id_token_signed_response_alg=algorithm)
        _, session = set_up(alice.open_session())
        age = "created_at = created_at - interval '1 hour', reauthenticated_at = now() - interval '1 hour'"
        database.run(f"UPDATE sessions SET {age}")
        code = granted_code(database, app_client, session, "openid email", nonce="a nonce")
        tokens = app_client.redeem(client, code).json
        old = claims_of(tokens["id_token"])
        assert (old.pop("nonce"), old["acr"], old["amr"]) == ("a nonce", "aal2", ["mfa", "otp", "pwd"])
        assert old["auth_time"] < old["iat"] - 3000
        answer = app_client.refresh(client, tokens["refresh_token"]).json
        new = claims_of(answer["id_token"])
        assert jwt.get_unverified_header(answer["id_token"])["alg"] == algorithm
        half = create_half_hash(answer["access_token"], algorithm)
        assert new.pop("at_hash") == (half and half.decode()) != old.pop("at_hash")
        issued_at = claims_of(answer["access_token"])["iat"]
        assert (new.pop("iat"), new.pop("exp")) == (issued_at, issued_at + 3600)
        assert (old.pop("iat") <= issued_at, old.pop("exp") <= issued_at + 3600) == (True, True)
        assert new == old

    def test_refreshed_id_token_has_the_current_claims(self, client, database, app_client, alice):
        database.run('UPDATE users SET app_metadata = \'{"groups": ["editors", "staff"]}\'')
        tokens = tokens_of(client, database, app_client, alice, "openid email groups")
        assert claims_of(tokens["id_token"])["groups"] == ["editors", "staff"]
        database.run("UPDATE users SET email = 'new@example.com', app_metadata = '{\"groups\": [\"staff\"]}'")
        claims = claims_of(app_client.refresh(client, tokens["refresh_token"]).json["id_token"])
        assert (claims["groups"], claims["email"]) == (["staff"], "new@example.com")


class TestRefusals:
    def test_token_of_another_client_is_refused_and_stays_good(self, client, database, refresh_with, tokens):
        for method in ("client_secret_basic", "client_secret_post", "none"):
            other = make_client(database, token_endpoint_auth_method=method)
            assert_refused(
                other.refresh(client, tokens["refresh_token"]), "invalid_grant", description=UNKNOWN
            )
        assert refresh_with(tokens["refresh_token"]).status_code == 200

    def test_client_must_authenticate(self, client, database, app_client, tokens):
        before, refresh_token = database.everything(), tokens["refresh_token"]
        for imposter in (
            Client(app_client.id, "wrong"),
            Client(app_client.id, None, "none"),
            Client(app_client.id, app_client.secret, "client_secret_post"),
            Client("00000000-0000-4000-8000-000000000000", app_client.secret),
        ):
            for token in (refresh_token, "x" * 56):
                assert_refused(imposter.refresh(client, token), "invalid_client", 401)
        assert database.everything() == before

    def test_tokens_of_sessions_and_of_clients_do_not_stand_for_each_other(
        self, client, database, app_client, alice, refresh_with, tokens
    ):
        session = alice.open_session()
        assert_refused(refresh_with(session.refresh_token), "invalid_grant", description=UNKNOWN)
        assert_error(refresh(client, tokens["refresh_token"]), 400, "refresh_token_not_found")
        # A token of the right key for the other kind of session is refused too.
        parts = client.application.extensions["latchkey"]
        session_id = claims_of(tokens["access_token"])["session_id"]
        assert_error(
            refresh(client, parts.refresh_tokens.make(session_id, 0)), 400, "refresh_token_not_found"
        )
        forged = parts.client_refresh_tokens.make(session.id, 0)
        assert_refused(refresh_with(forged), "invalid_grant", description=UNKNOWN)
        assert session.refresh().status_code == refresh_with(tokens["refresh_token"]).status_code == 200

    def test_client_without_the_grant_type_is_refused(self, database, refresh_with, tokens):
        database.run("UPDATE oauth_clients SET grant_types = '{authorization_code}'")
        assert_refused(refresh_with(tokens["refresh_token"]), "unauthorized_client")


@pytest.mark.parametrize(
    "change",
    [
        "DELETE FROM oauth_grants",
        "DELETE FROM oauth_clients",
        "UPDATE oauth_clients SET allowed_roles = '{staff}'",
        "UPDATE sessions SET refreshed_at = now() - interval '30 days'",
        "SELECT end_held(id, NULL, 'password_changed', 'all', NULL, false, now()) FROM users",
    ],
)
def test_session_of_a_client_ends_at_once(
    client, database, app_client, alice, refresh_with, tokens, service_role, change
):
    """Its access token ends too, and introspection says so."""
    headers = bearer(tokens["access_token"])
    assert client.get("/oauth/userinfo", headers=headers).status_code == 200
    code = granted_code(database, app_client, alice.open_session())
    database.run(change)
    response = refresh_with(tokens["refresh_token"])
    is_gone = change == "DELETE FROM oauth_clients"
    assert_refused(response, "invalid_client" if is_gone else "invalid_grant", 401 if is_gone else 400)
    answer = client.get("/oauth/userinfo", headers=headers)
    assert_refused(answer, "invalid_token", 401)
    assert answer.headers["WWW-Authenticate"] == 'Bearer realm="latchkey", error="invalid_token"'
    introspection = client.post("/introspect", json={"token": tokens["access_token"]}, headers=service_role)
    assert_ok(introspection, {"active": False})
    if "refreshed_at" not in change:
        assert app_client.redeem(client, code).status_code in (400, 401)
