"""Sentences of errors that applications of the Supabase clients show or compare."""

import base64
import json

import pytest

from tests.support.answers import ANYTHING, assert_error
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
def test_body_is_refused(client_without_phones, database, path, body, error):
    response = client_without_phones.post(path, json=body)
    status, error_code, sentence = error
    assert_error(response, status, error_code, sentence, response.json.get("details"))
    assert database.count("users") == 0


def test_taken_address_and_disabled_sign_up(make_app):
    client = make_app(AUTH_AUTOCONFIRM="true").test_client()
    client.post("/signup", json=DAVE)
    response = client.post("/signup", json=DAVE)
    assert_error(response, 409, "user_already_exists", "User already registered")
    response = make_app(AUTH_DISABLE_SIGNUP="true").test_client().post("/signup", json=DAVE)
    assert_error(response, 403, "signup_disabled", "Signups not allowed for this instance")


EACH = "contain at least one character of each"


@pytest.mark.parametrize(
    ("password", "settings", "sentence", "reasons"),
    [
        ("Shrtq-1", {}, "be at least 8 characters.", ["length"]),
        ("shrtq", {}, "be at least 8 characters.", ["length", "characters"]),
        ("Shrtq-1", {"AUTH_PASSWORD_MIN_LENGTH": "20"}, "be at least 20 characters.", ["length"]),
        ("correct-horse", {}, f"{EACH}: uppercase, numbers.", ["characters"]),
        ("Password1!", {}, "not be a common one, even with digits and symbols.", ["common"]),
    ],
)
def test_weak_password(make_app, service_role, password, settings, sentence, reasons):
    client, body = make_app(**settings).test_client(), DAVE | {"password": password}
    for path, headers, status in (("/signup", {}, 422), ("/admin/users", service_role, 400)):
        response = client.post(path, json=body, headers=headers)
        expected = {"msg": f"Password should {sentence}", "weak_password": {"reasons": reasons}}
        assert_error(response, status, "weak_password", details=ANYTHING, **expected)


def test_access_token(client):
    sentence = "invalid JWT: unable to parse or verify signature"
    for token in ("garbage", "a.b.c", an_id_token(sub="alice")):
        response = client.get("/user", headers={"Authorization": f"Bearer {token}"})
        assert_error(response, 401, "bad_jwt", sentence)
    sentence = "This endpoint requires a valid Bearer token"
    assert_error(client.get("/user"), 401, "no_authorization", sentence, ANYTHING)


def test_refresh_token(alice, database):
    ended, session = alice.sign_in(), alice.sign_in()
    ended.post("/logout?scope=local")
    sentence = "Invalid Refresh Token: Refresh Token Not Found"
    assert_error(ended.refresh(), 400, "refresh_token_not_found", sentence)
    newer = session.refreshed()
    database.run("UPDATE sessions SET refreshed_at = refreshed_at - interval '2 minutes'")
    newer.refresh()
    sentence = "Invalid Refresh Token: Already Used"
    assert_error(session.refresh(), 400, "refresh_token_already_used", sentence)


def test_authorization_code(client):
    known = {"auth_code": "unknown", "code_verifier": "v" * 43}
    assert_error(client.post("/token?grant_type=pkce", json=known), 404, "flow_state_not_found")
    for missing in known:
        response = client.post("/token?grant_type=pkce", json=known | {missing: ""})
        assert_error(response, 400, "validation_failed", details=ANYTHING)


def test_reauthentication_of_a_user_without_a_confirmed_address(alice, database):
    session = alice.open_session()
    database.run("UPDATE users SET email_confirmed_at = NULL")
    sentence = "Reauthentication requires the user to have an email or a phone number"
    assert_error(session.get("/reauthenticate"), 422, "validation_failed", sentence)


def test_manual_linking(make_app, alice):
    session = alice.sign_in().on(make_app(AUTH_MANUAL_LINKING="false").test_client())
    path = "/user/identities/authorize?provider=google"
    assert_error(session.get(path), 404, "manual_linking_disabled", "Manual linking is disabled")
    session.post("/logout")
    assert_error(session.get(path), 401, "session_not_found")
