"""Sentences of errors that applications of the Supabase clients show or compare."""

import base64
import json

import pytest

from tests.support.answers import ANYTHING, assert_error
from tests.support.cases import cases
from tests.support.links import PHONE
from tests.support.users import PASSWORD

DAVE = {"email": "dave@example.com", "password": PASSWORD}
INVALID_JWT = "invalid JWT: unable to parse or verify signature"


def an_id_token(**claims):
    """Return an unsigned token."""
    parts = [json.dumps(part).encode() for part in ({"alg": "RS256"}, claims)]
    return ".".join(base64.urlsafe_b64encode(part).rstrip(b"=").decode() for part in [*parts, b"signature"])


class TestAddresses:
    SENTENCE = "Unable to validate email address: invalid format"
    PHONE_SENTENCE = "Invalid phone number format (E.164 required)"

    @cases("path", ["/signup", "/token?grant_type=password", "/otp", "/recover", "/verify"])
    @cases("email", ["dave", "dave@", "", "dave@example..com"])
    def test_malformed_email(self, client, path, email):
        body = {"email": email, "password": PASSWORD, "type": "signup", "token": "123456"}
        assert_error(client.post(path, json=body), 400, "validation_failed", self.SENTENCE, ANYTHING)

    @cases("path", ["/signup", "/token?grant_type=password", "/otp"])
    @cases("phone", ["dave", "0170123456", "+0123456789", ""])
    def test_malformed_phone_even_if_phones_are_disabled(self, make_app, path, phone):
        client = make_app(AUTH_PHONE_ENABLED="false").test_client()
        body = {"phone": phone, "password": PASSWORD}
        assert_error(client.post(path, json=body), 400, "validation_failed", self.PHONE_SENTENCE, ANYTHING)

    def test_address_of_another_type_keeps_the_general_sentence(self, client):
        response, details = client.post("/recover", json={"email": 1}), "email: must be a string"
        assert_error(response, 400, "validation_failed", "The request is not valid", details)

    def test_taken_address(self, make_app):
        client = make_app(AUTH_AUTOCONFIRM="true").test_client()
        client.post("/signup", json=DAVE)
        response = client.post("/signup", json=DAVE)
        assert_error(response, 409, "user_already_exists", "User already registered")


EACH = "contain at least one character of each"


class TestPasswords:
    @pytest.mark.parametrize(
        ("password", "settings", "sentence", "reasons"),
        [
            ("Short-1", {}, "be at least 8 characters.", ["length"]),
            ("short", {}, "be at least 8 characters.", ["length", "characters"]),
            ("Short-1", {"AUTH_PASSWORD_MIN_LENGTH": "20"}, "be at least 20 characters.", ["length"]),
            ("correct-horse", {}, f"{EACH}: uppercase, numbers.", ["characters"]),
            ("Password1!", {}, "not be a common one or the user's own address.", ["common"]),
        ],
    )
    def test_weak_password(self, make_app, service_role, password, settings, sentence, reasons):
        client, body = make_app(**settings).test_client(), DAVE | {"password": password}
        expected = {"msg": f"Password should {sentence}", "weak_password": {"reasons": reasons}}
        response = client.post("/signup", json=body)
        assert_error(response, 422, "weak_password", details=ANYTHING, **expected)
        response = client.post("/admin/users", json=body, headers=service_role)
        assert_error(response, 400, "weak_password", details=ANYTHING, **expected)


class TestCredentials:
    @cases("token", ["garbage", "a.b.c", an_id_token(sub="alice")])
    def test_invalid_access_token(self, client, token):
        response = client.get("/user", headers={"Authorization": f"Bearer {token}"})
        assert_error(response, 401, "bad_jwt", INVALID_JWT)

    def test_missing_access_token(self, client):
        sentence = "This endpoint requires a valid Bearer token"
        assert_error(client.get("/user"), 401, "no_authorization", sentence, ANYTHING)

    def test_unknown_refresh_token_and_that_of_an_ended_session(self, client, alice):
        session = alice.open_session()
        session.post("/logout")
        unknown = client.post("/token?grant_type=refresh_token", json={"refresh_token": "unknown"})
        sentence = "Invalid Refresh Token: Refresh Token Not Found"
        for response in (unknown, session.refresh()):
            assert_error(response, 400, "refresh_token_not_found", sentence)

    def test_reused_refresh_token(self, make_app, alice):
        client = make_app(AUTH_REFRESH_REUSE_INTERVAL="0").test_client()
        session = alice.sign_in().on(client)
        session.refresh()
        sentence = "Invalid Refresh Token: Already Used"
        assert_error(session.refresh(), 400, "refresh_token_already_used", sentence)

    def test_wrong_code(self, client):
        body = {"type": "email", "email": "dave@example.com", "token": "123456"}
        assert_error(client.post("/verify", json=body), 403, "otp_expired", "Token has expired or is invalid")

    def test_authorization_code(self, client):
        known = {"auth_code": "unknown", "code_verifier": "v" * 43}
        assert_error(client.post("/token?grant_type=pkce", json=known), 404, "flow_state_not_found")
        for missing in known:
            response = client.post("/token?grant_type=pkce", json=known | {missing: ""})
            assert_error(response, 400, "validation_failed", details=ANYTHING)


class TestReauthentication:
    def test_user_without_a_confirmed_address(self, alice, database):
        session = alice.open_session()
        database.run("UPDATE users SET email_confirmed_at = NULL")
        sentence = "Reauthentication requires the user to have an email or a phone number"
        assert_error(session.get("/reauthenticate"), 422, "validation_failed", sentence)


class TestDisabledFeatures:
    def test_sign_up(self, make_app):
        client = make_app(AUTH_DISABLE_SIGNUP="true").test_client()
        sentence = "Signups not allowed for this instance"
        assert_error(client.post("/signup", json=DAVE), 403, "signup_disabled", sentence)

    def test_anonymous_users(self, client, database):
        response = client.post("/signup", json={"data": {"name": "Dave"}, "gotrue_meta_security": {}})
        sentence = "Anonymous sign-ins are disabled"
        assert_error(response, 422, "anonymous_provider_disabled", sentence)
        assert database.count("users") == 0

    @cases("body", [{}, {"domain": 1}, {"domain": "example.com"}])
    def test_saml(self, client, body):
        response = client.post("/sso", json=body)
        assert_error(response, 404, "saml_provider_disabled", "SAML 2.0 is disabled")

    def test_wallets(self, client):
        response = client.post("/token?grant_type=web3", json={"chain": "solana"})
        assert_error(response, 422, "web3_provider_disabled", "Web3 provider is disabled")

    def sign_in(self, client, id_token):
        return client.post("/token?grant_type=id_token", json={"provider": "google", "id_token": id_token})

    @cases("issuer", ["https://accounts.google.com", 'https://{issuer}/"'])
    def test_provider_of_an_id_token(self, client, issuer):
        sentence = f'Provider (issuer "{issuer}") is not enabled'
        assert_error(self.sign_in(client, an_id_token(iss=issuer)), 400, "provider_disabled", sentence)

    @cases("id_token", ["garbage", "a.b.c", "", "é.é.é", an_id_token(), "W10.W10.W10"])
    def test_text_that_is_no_id_token(self, client, id_token):
        response = self.sign_in(client, id_token)
        assert_error(response, 400, "bad_oauth_callback", "Bad ID token", ANYTHING)

    def test_manual_linking(self, make_app, alice):
        session = alice.sign_in().on(make_app(AUTH_MANUAL_LINKING="false").test_client())
        path, identity_id = "/user/identities/authorize?provider=google", session.user["identities"][0]["id"]
        for response in (session.get(path), session.delete(f"/user/identities/{identity_id}")):
            assert_error(response, 404, "manual_linking_disabled", "Manual linking is disabled")
        session.post("/logout")
        assert_error(session.get(path), 401, "session_not_found")

    def test_message_to_a_phone_where_phones_are_disabled(self, make_app):
        client = make_app(AUTH_PHONE_ENABLED="false").test_client()
        response = client.post("/otp", json={"phone": PHONE})
        assert_error(response, 400, "phone_provider_disabled")
