"""Sentences of errors that applications of the Supabase clients show or compare."""

import base64
import json

import pytest

from tests.support.answers import assert_error
from tests.support.cases import cases
from tests.support.links import PHONE
from tests.support.users import PASSWORD

DAVE = {"email": "dave@example.com", "password": PASSWORD}
CODE = {"type": "email", "email": "dave@example.com", "token": "123456"}
ID_TOKEN = "/token?grant_type=id_token"


def an_id_token(**claims):
    """Return an unsigned token."""
    parts = [json.dumps(part).encode() for part in ({"alg": "RS256"}, claims)]
    return ".".join(base64.urlsafe_b64encode(part).rstrip(b"=").decode() for part in [*parts, b"signature"])


def google(id_token):
    return {"provider": "google", "id_token": id_token}


MALFORMED_EMAIL = (400, "validation_failed", "Unable to validate email address: invalid format")
MALFORMED_PHONE = (400, "validation_failed", "Invalid phone number format (E.164 required)")
WRONG_CODE = (403, "otp_expired", "Token has expired or is invalid")
UNKNOWN_TOKEN = (400, "refresh_token_not_found", "Invalid Refresh Token: Refresh Token Not Found")
NOT_ANONYMOUSLY = (422, "anonymous_provider_disabled", "Anonymous sign-ins are disabled")
NO_SAML = (404, "saml_provider_disabled", "SAML 2.0 is disabled")
NO_WALLETS = (422, "web3_provider_disabled", "Web3 provider is disabled")
NO_ID_TOKEN = (400, "bad_oauth_callback", "Bad ID token")
NO_PHONES = (400, "phone_provider_disabled", "Sign-in by phone is disabled")
# An issuer with characters that a format string or JSON would read.
ISSUERS = ("https://accounts.google.com", 'https://{issuer}/"')
PATHS = ("/signup", "/token?grant_type=password", "/otp")
EMAILS, PHONES = ("dave", "dave@", "", "dave@example..com"), ("dave", "0170123456", "+0123456789", "")
NO_ID_TOKENS = ("garbage", "a.b.c", "", "é.é.é", an_id_token(), "W10.W10.W10")


@pytest.fixture
def client_without_phones(make_app):
    return make_app(AUTH_PHONE_ENABLED="false").test_client()


def not_enabled(issuer):
    return 400, "provider_disabled", f'Provider (issuer "{issuer}") is not enabled'


@cases(
    ("path", "body", "error"),
    [
        *(
            (path, DAVE | {"email": each}, MALFORMED_EMAIL)
            for path in (*PATHS, "/recover")
            for each in EMAILS
        ),
        *(("/verify", CODE | {"email": email}, MALFORMED_EMAIL) for email in EMAILS),
        *(
            (path, {"phone": each, "password": PASSWORD}, MALFORMED_PHONE)
            for path in PATHS
            for each in PHONES
        ),
        # An address of another type keeps the general sentence.
        ("/recover", {"email": 1}, (400, "validation_failed", "The request is not valid")),
        ("/verify", CODE, WRONG_CODE),
        ("/token?grant_type=refresh_token", {"refresh_token": "unknown"}, UNKNOWN_TOKEN),
        ("/signup", {"data": {"name": "Dave"}, "gotrue_meta_security": {}}, NOT_ANONYMOUSLY),
        *(("/sso", body, NO_SAML) for body in ({}, {"domain": 1}, {"domain": "example.com"})),
        ("/token?grant_type=web3", {"chain": "solana"}, NO_WALLETS),
        *((ID_TOKEN, google(an_id_token(iss=each)), not_enabled(each)) for each in ISSUERS),
        *((ID_TOKEN, google(text), NO_ID_TOKEN) for text in NO_ID_TOKENS),
        ("/otp", {"phone": PHONE}, NO_PHONES),
    ],
)
def test_body_is_refused_with_its_sentence(client_without_phones, database, path, body, error):
    response = client_without_phones.post(path, json=body)
    status, error_code, sentence = error
    assert_error(response, status, error_code, sentence, response.json.get("details"))
    assert database.count("users") == 0


def test_taken_address_and_disabled_sign_up_are_refused_with_their_sentences(make_app):
    client = make_app(AUTH_AUTOCONFIRM="true").test_client()
    client.post("/signup", json=DAVE)
    response = client.post("/signup", json=DAVE)
    assert_error(response, 409, "user_already_exists", "User already registered")
    response = make_app(AUTH_DISABLE_SIGNUP="true").test_client().post("/signup", json=DAVE)
    assert_error(response, 403, "signup_disabled", "Signups not allowed for this instance")


def test_refresh_token_is_refused_with_its_sentence(alice, database):
    ended_session, session = alice.sign_in(), alice.sign_in()
    ended_session.post("/logout?scope=local")
    sentence = "Invalid Refresh Token: Refresh Token Not Found"
    assert_error(ended_session.refresh(), 400, "refresh_token_not_found", sentence)
    newer = session.refreshed()
    database.run("UPDATE sessions SET refreshed_at = refreshed_at - interval '2 minutes'")
    newer.refresh()
    sentence = "Invalid Refresh Token: Already Used"
    assert_error(session.refresh(), 400, "refresh_token_already_used", sentence)
