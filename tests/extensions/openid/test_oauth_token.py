"""POST /oauth/token for an authorization code, and the authentication of clients there."""

import base64
from urllib.parse import quote_plus

import jwt
import pytest
from authlib.oidc.core.util import create_half_hash

from tests.support.answers import A_REFRESH_TOKEN, A_UUID, AN_ACCESS_TOKEN, assert_ok
from tests.support.cases import cases
from tests.support.checked_rows import statements_run
from tests.support.links import VERIFIER
from tests.support.openid import (
    REDIRECT_URI,
    RESOURCE,
    USERINFO,
    Client,
    assert_refused,
    bearer,
    claims_of,
    granted_code,
    make_client,
    tokens_of,
)
from tests.support.server import at_once

PATH = "/oauth/token"
OTHER_VERIFIER = "another-code-verifier-0123456789-abcdefghijklmn"
UNKNOWN = "Unknown client, or wrong client_secret"
BASIC = 'Basic realm="latchkey"'
GONE = "Invalid authorization code"


@pytest.fixture
def code(database, app_client, session):
    return granted_code(database, app_client, session)


class TestTokens:
    def test_code_is_redeemed_for_tokens(self, client, database, app_client, alice, session, code):
        before = database.everything("users", "user_objects", "known_networks", "browser_sessions")
        answer = app_client.redeem(client, code, unknown="is ignored")
        expected = {"access_token": AN_ACCESS_TOKEN, "token_type": "bearer", "expires_in": 3600}
        expected |= {"scope": "openid email", "refresh_token": A_REFRESH_TOKEN, "id_token": AN_ACCESS_TOKEN}
        assert_ok(answer, expected)
        assert (answer.headers["Cache-Control"], answer.headers["Pragma"]) == ("no-store", "no-cache")
        assert database.everything("users", "user_objects", "known_networks", "browser_sessions") == before
        opened_session = database.one(
            "SELECT id::text, method, scopes FROM sessions WHERE grant_id IS NOT NULL"
        )
        assert opened_session[1:] == ("oauth_client", ["openid", "email"])
        entry = database.one("SELECT user_id::text, details FROM audit_log WHERE action = 'signed_in'")
        assert (entry.user_id, entry.details["session_id"]) == (alice.id, opened_session.id)
        # The user's sessions do not include it.
        assert [each["id"] for each in session.get("/sessions").json["data"]] == [session.id]

    def test_access_token_has_no_other_claims(self, client, database, app_client, alice, session):
        tokens = tokens_of(client, database, app_client, alice, "openid email profile phone groups roles")
        signed_in_at = "SELECT floor(extract(epoch FROM created_at))::bigint FROM sessions WHERE id = %(id)s"
        assert jwt.get_unverified_header(tokens["access_token"])["typ"] == "at+jwt"
        assert claims_of(tokens["access_token"]) == {
            **{"iss": "http://localhost:8000", "sub": alice.id, "aud": USERINFO, "jti": A_UUID},
            **{"client_id": app_client.id, "scope": "openid email profile phone groups roles"},
            **{"session_id": A_UUID, "acr": "aal1", "amr": ["pwd"]},
            "auth_time": database.value(signed_in_at, id=session.id),
            "iat": claims_of(tokens["access_token"])["iat"],
            "exp": claims_of(tokens["access_token"])["iat"] + 3600,
        }

    @pytest.mark.parametrize("algorithm", ["RS256", "ES256"])
    def test_id_token_is_signed_as_the_client_wishes(self, client, database, alice, algorithm):
        app_client = make_client(database, id_token_signed_response_alg=algorithm)
        tokens = tokens_of(client, database, app_client, alice, "openid profile email", nonce="a nonce")
        token, header = tokens["id_token"], jwt.get_unverified_header(tokens["id_token"])
        key = jwt.PyJWKSet.from_dict(client.get("/.well-known/jwks.json").json)[header["kid"]]
        claims = jwt.decode(token, key, algorithms=[algorithm], audience=app_client.id)
        assert (header["typ"], claims.pop("exp")) == ("JWT", claims.pop("iat") + 3600)
        assert min(claims.pop("updated_at"), claims.pop("auth_time")) > 0
        assert len(claims.pop("sid")) == 32
        half = create_half_hash(tokens["access_token"], algorithm)
        expected = {"iss": "http://localhost:8000", "sub": alice.id, "aud": app_client.id, "nonce": "a nonce"}
        expected |= {"at_hash": half and half.decode(), "acr": "aal1", "amr": ["pwd"]}
        assert claims == expected | {"email": alice.email, "email_verified": True}

    def test_without_the_scope_openid_there_is_no_id_token(self, client, database, app_client, alice):
        assert "id_token" not in tokens_of(client, database, app_client, alice, "email")

    def test_client_without_the_grant_type_gets_no_refresh_token(self, client, database, alice):
        app_client = make_client(database, grant_types=["authorization_code"])
        assert "refresh_token" not in tokens_of(client, database, app_client, alice)

    @cases("lifetime", [120, 7200, None])
    def test_tokens_live_as_long_as_the_client_says_and_id_tokens_no_longer_than_an_hour(
        self, client, database, alice, lifetime
    ):
        app_client = make_client(database, token_lifetime=lifetime)
        tokens = tokens_of(client, database, app_client, alice)
        for answer in (tokens, app_client.refresh(client, tokens["refresh_token"]).json):
            claims, id_claims = claims_of(answer["access_token"]), claims_of(answer["id_token"])
            assert answer["expires_in"] == claims["exp"] - claims["iat"] == lifetime or 3600
            assert id_claims["exp"] - id_claims["iat"] == min(lifetime or 3600, 3600)

    def test_eleventh_session_of_a_grant_ends_its_oldest(self, client, database, app_client, alice, bob):
        other_tokens = tokens_of(client, database, make_client(database), alice)
        tokens_of_bob = tokens_of(client, database, app_client, bob)
        all_tokens = [tokens_of(client, database, app_client, alice) for _ in range(11)]
        answers = [
            client.get("/oauth/userinfo", headers=bearer(each["access_token"]))
            for each in (other_tokens, tokens_of_bob, *all_tokens)
        ]
        assert [answer.status_code for answer in answers] == [200, 200, 401, *[200] * 10]
        assert database.count("sessions", "grant_id IS NULL AND ended_at IS NOT NULL") == 0


class TestCode:
    def test_authorization_code_replay_ends_the_session_of_the_first_use(
        self, client, database, app_client, session, code
    ):
        tokens = app_client.redeem(client, code).json
        # A stranger who finds the code cannot sign the user out.
        assert_refused(app_client.redeem(client, code, code_verifier=OTHER_VERIFIER), "invalid_grant")
        assert_refused(make_client(database).redeem(client, code), "invalid_grant", description=GONE)
        assert app_client.refresh(client, tokens["refresh_token"]).status_code == 200
        assert_refused(app_client.redeem(client, code), "invalid_grant", description=GONE)
        assert_refused(app_client.refresh(client, tokens["refresh_token"]), "invalid_grant")
        assert client.get("/oauth/userinfo", headers=bearer(tokens["access_token"])).status_code == 401
        end_reason = "SELECT end_reason FROM sessions WHERE ended_at IS NOT NULL"
        assert database.all(end_reason) == [("authorization_code_reused",)]
        assert session.get("/user").status_code == 200
        assert database.count("audit_log", "action = 'authorization_code_reused'") == 1

    def test_one_of_fifty_concurrent_uses_wins(self, server, database, app_client, code):
        answers = at_once(50, lambda _: app_client.redeem(server, code))
        assert sorted(answer.status_code for answer in answers) == [200] + [400] * 49
        end_reason = "SELECT end_reason FROM sessions WHERE grant_id IS NOT NULL"
        assert database.all(end_reason) == [("authorization_code_reused",)]

    def test_authorization_code_injection_into_another_session_or_client_is_refused(
        self, client, database, app_client, code
    ):
        """RFC 9700, section 4.5: a stolen code, with the verifier of the thief's own flow."""
        assert_refused(app_client.redeem(client, code, code_verifier=OTHER_VERIFIER), "invalid_grant")
        assert_refused(make_client(database).redeem(client, code), "invalid_grant", description=GONE)
        public = make_client(database, token_endpoint_auth_method="none")
        assert_refused(public.redeem(client, code), "invalid_grant", description=GONE)
        # The attempts do not spend the code.
        assert app_client.redeem(client, code).status_code == 200

    def test_pkce_downgrade_at_the_token_endpoint_is_refused(self, client, database, session):
        """RFC 9700, section 4.8: the attacker strips the challenge from the authorization request."""
        lax = make_client(database, require_pkce=False)
        code = granted_code(database, lax, session, code_challenge=None)
        assert_refused(lax.redeem(client, code, redirect_uri=REDIRECT_URI), "invalid_grant")
        unverified = {"redirect_uri": REDIRECT_URI, "code_verifier": ""}
        assert lax.redeem(client, code, **unverified).status_code == 200
        # The same from the request of a client that must use PKCE.
        strict = make_client(database)
        code = granted_code(database, strict, session, code_challenge=None)
        assert_refused(strict.redeem(client, code, **unverified), "invalid_grant")

    def test_challenge_is_always_checked(self, client, database, app_client, session):
        for each in (app_client, make_client(database, require_pkce=False)):
            code = granted_code(database, each, session)
            form = {"redirect_uri": REDIRECT_URI}
            for verifier in ("", OTHER_VERIFIER, VERIFIER.upper()):
                assert_refused(each.redeem(client, code, code_verifier=verifier, **form), "invalid_grant")
            for malformed in ("short", "é" * 43, "x" * 129):
                response = each.redeem(client, code, code_verifier=malformed, **form)
                assert_refused(response, "invalid_request")
            assert each.redeem(client, code, **form).status_code == 200

    def test_redirect_uri_is_compared_and_required_without_pkce(self, client, database, app_client, session):
        lax = make_client(database, require_pkce=False)
        for each, status in ((app_client, 200), (lax, 400)):
            code = granted_code(database, each, session)
            for other in (f"{REDIRECT_URI}/", "https://evil.example/callback"):
                assert_refused(each.redeem(client, code, redirect_uri=other), "invalid_grant")
            assert each.redeem(client, code).status_code == status
        response = lax.redeem(client, code, redirect_uri="")
        assert_refused(response, "invalid_request", description="redirect_uri: is required")
        assert lax.redeem(client, code, redirect_uri=REDIRECT_URI).status_code == 200

    def test_access_token_is_not_issued_for_another_resource(self, client, database, app_client, session):
        """RFC 8707, section 2.2."""
        code_for_resource, code_for_none = (
            granted_code(database, app_client, session, resource=each) for each in (RESOURCE, None)
        )
        for code in (code_for_resource, code_for_none):
            assert_refused(
                app_client.redeem(client, code, resource="https://other.example/"), "invalid_target"
            )
        assert_refused(app_client.redeem(client, code_for_none, resource=RESOURCE), "invalid_target")
        assert app_client.redeem(client, code_for_resource, resource=RESOURCE).status_code == 200
        assert claims_of(app_client.redeem(client, code_for_none).json["access_token"])["aud"] == USERINFO

    @pytest.mark.parametrize(
        ("change", "error"),
        [
            ("UPDATE oauth_requests SET code_expires_at = now()", "invalid_grant"),
            ("DELETE FROM oauth_grants", "invalid_grant"),
            ("UPDATE sessions SET ended_at = now(), end_reason = 'logout'", "invalid_grant"),
            (
                "SELECT end_held(id, NULL, 'password_changed', 'all', NULL, false, now()) FROM users",
                "invalid_grant",
            ),
            ("DELETE FROM users", "invalid_grant"),
            ("DELETE FROM oauth_clients", "invalid_client"),
            ("UPDATE users SET banned_until = 'infinity'", "access_denied"),
            ("UPDATE oauth_clients SET allowed_roles = '{staff}'", "access_denied"),
            ("UPDATE oauth_clients SET grant_types = '{refresh_token}'", "unauthorized_client"),
        ],
    )
    def test_code_is_void_once_it_or_its_user_client_or_session_has_changed(
        self, client, database, app_client, code, change, error
    ):
        database.run(change)
        assert_refused(app_client.redeem(client, code), error, 401 if error == "invalid_client" else 400)
        assert database.count("sessions", "grant_id IS NOT NULL") == 0


class TestClientAuthentication:
    @pytest.fixture
    def redeem(self, client, code):
        """Send a body for the code, with other members and headers."""
        body = {"grant_type": "authorization_code", "code": code, "code_verifier": VERIFIER}
        return lambda headers=None, **members: client.post(PATH, data=body | members, headers=headers)

    def test_registered_method_is_accepted_in_a_form_and_in_json(self, client, database, session):
        for method in ("client_secret_basic", "client_secret_post", "none"):
            app_client = make_client(database, token_endpoint_auth_method=method)
            codes = [granted_code(database, app_client, session) for _ in range(2)]
            assert app_client.redeem(client, codes[0]).status_code == 200
            body = {"grant_type": "authorization_code", "code": codes[1], "code_verifier": VERIFIER}
            is_basic = method == "client_secret_basic"
            credentials = {"client_id": app_client.id.upper(), "client_secret": app_client.secret}
            answer = client.post(
                PATH,
                json=body | ({} if is_basic else credentials),
                headers=app_client.basic if is_basic else None,
            )
            assert answer.status_code == 200, answer.json

    def test_client_without_a_named_method_uses_either(self, client, database, session, service_role):
        body = {"client_name": "Hub", "redirect_uris": [REDIRECT_URI]}
        application = client.post("/admin/oauth/clients", json=body, headers=service_role).json
        methods = ("client_secret_basic", "client_secret_post")
        ways = [Client(application["client_id"], application["client_secret"], method) for method in methods]
        for hub in ways:
            tokens = hub.redeem(client, granted_code(database, hub, session)).json
            assert hub.refresh(client, tokens["refresh_token"]).status_code == 200
            assert hub.post(client, "/introspect", token=tokens["access_token"]).json["active"] is True
        change = {"token_endpoint_auth_method": "client_secret_post"}
        client.put(f"/admin/oauth/clients/{application['client_id']}", json=change, headers=service_role)
        answers = [hub.redeem(client, granted_code(database, hub, session)) for hub in ways]
        assert [answer.status_code for answer in answers] == [401, 200]

    def test_basic_is_percent_decoded(self, client, database, app_client, session):
        """RFC 6749, section 2.3.1."""
        database.run("UPDATE oauth_clients SET secret_hash = sha256(convert_to('a+b%%:/é &', 'UTF8'))")
        encoded = Client(app_client.id, quote_plus("a+b%:/é &"))
        assert encoded.redeem(client, granted_code(database, app_client, session)).status_code == 200
        raw = Client(app_client.id, "a+b%:/é &")
        response = raw.redeem(client, granted_code(database, app_client, session))
        assert_refused(response, "invalid_client", 401, UNKNOWN)

    def test_unknown_client_and_wrong_secret_are_answered_alike(self, app, client, parts, app_client, redeem):
        before, answers, statements = statements_run(), [], []
        ids = (app_client.id, "00000000-0000-4000-8000-000000000000")
        for number, id in enumerate((*ids, *ids)):
            wrong = Client(id, "wrong", "client_secret_basic" if number < 2 else "client_secret_post")
            answer = redeem(wrong.basic) if number < 2 else redeem(client_id=id, client_secret="wrong")
            assert_refused(answer, "invalid_client", 401, UNKNOWN)
            assert answer.headers.get("WWW-Authenticate") == (BASIC if number < 2 else None)
            assert answer.json["error_code"] == "invalid_credentials"
            answers.append(answer.json)
            statements.append(statements_run() - before)
            before = statements_run()
        assert answers == answers[:1] * 4
        assert statements == statements[:1] * 4

    def test_errors_name_the_cause(self, database, app_client, redeem):
        public = make_client(database, token_endpoint_auth_method="none")
        credentials = {"client_id": app_client.id, "client_secret": app_client.secret}
        for headers, members, cause in (
            (None, {}, "client_id: is required"),
            (
                None,
                credentials,
                "client is registered for 'client_secret_basic' but 'client_secret_post' was used",
            ),
            (None, {"client_id": app_client.id}, "confidential clients must provide client_secret"),
            (None, credentials | {"client_secret": ""}, "confidential clients must provide client_secret"),
            (None, credentials | {"client_id": public.id}, "public clients must not provide client_secret"),
            (public.basic, {}, "public clients must not provide client_secret"),
            (None, {"client_id": "not a UUID"}, UNKNOWN),
        ):
            assert_refused(redeem(headers, **members), "invalid_client", 401, cause)
        assert redeem(app_client.basic).status_code == 200

    @cases(
        "credentials",
        ["", "é", "a", "YQ", base64.b64encode(b"no colon").decode(), base64.b64encode(b"\xff:\xff").decode(),
         base64.b64encode(b"%ff:%ff").decode(), base64.b64encode(b"a:b").decode() + ", Basic YTpi"],
    )  # fmt: skip
    def test_malformed_basic_is_refused(self, redeem, credentials):
        response = redeem({"Authorization": f"Basic {credentials}".encode().decode("latin-1")})
        assert_refused(response, "invalid_client", 401)
        assert response.headers["WWW-Authenticate"] == BASIC


class TestRequest:
    def test_malformed_request_is_refused_by_name(self, client, app_client, code):
        def ask(**form):
            return client.post(PATH, data=form, headers=app_client.basic)

        assert_refused(ask(), "invalid_request", description="grant_type: is required")
        for unsupported in ("password", "implicit", "urn:ietf:params:oauth:grant-type:jwt-bearer"):
            assert_refused(ask(grant_type=unsupported), "unsupported_grant_type")
        for name in ("authorization_code", "refresh_token"):
            assert_refused(ask(grant_type=name), "invalid_request")
            assert_refused(ask(grant_type=name, code="", refresh_token=""), "invalid_request")
        assert_refused(ask(grant_type="authorization_code", code="x"), "invalid_grant")
        assert_refused(ask(grant_type="refresh_token", refresh_token="x"), "invalid_grant")
        assert_refused(ask(grant_type=["refresh_token"] * 2), "invalid_request")
        assert_refused(client.post(PATH, json=[]), "invalid_request")

    def test_parameters_in_the_query_are_ignored(self, client, app_client, code):
        query = f"?grant_type=authorization_code&code={code}&code_verifier={VERIFIER}"
        assert_refused(client.post(PATH + query, data={}, headers=app_client.basic), "invalid_request")
        assert app_client.redeem(client, code).status_code == 200

    def test_requests_are_limited_per_address(self, make_app, database, alice):
        limits = {"AUTH_RATE_LIMITS_ENABLED": "true", "AUTH_RATE_LIMIT_CLIENT_TOKENS": "2 per minute"}
        client, app_client = make_app(**limits).test_client(), make_client(database)
        code = granted_code(database, app_client, alice.open_session())
        assert app_client.redeem(client, code, code_verifier=OTHER_VERIFIER).status_code == 400
        tokens = app_client.redeem(client, code)
        assert (tokens.status_code, tokens.headers["X-RateLimit-Remaining"]) == (200, "0")
        assert_refused(app_client.redeem(client, code), "temporarily_unavailable", 429)
        # A refresh counts by its session.
        refreshed = app_client.refresh(client, tokens.json["refresh_token"])
        assert (refreshed.status_code, refreshed.headers["X-RateLimit-Limit"]) == (200, "60")
