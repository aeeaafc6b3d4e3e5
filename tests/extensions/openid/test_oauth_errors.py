"""Errors at the endpoints of applications, as the RFCs have them: the members, and the challenges of a 401."""

import pytest

from tests.support.answers import NO_ID, challenge
from tests.support.cases import cases
from tests.support.openid import assert_refused, make_client

FORM_NEEDED = "Content-Type: must be application/x-www-form-urlencoded or application/json"
OF_FORMS = ("/oauth/token", "/oauth/device_authorization", "/oauth/revoke", "/oauth/userinfo", "/introspect")


@cases("path", OF_FORMS)
@cases("kind", ["text/plain", "multipart/form-data; boundary=x", "application/xml", ""])
def test_body_of_another_type_is_an_invalid_request_that_names_the_form(
    client, database, service_role, path, kind
):
    """RFC 6749, section 5.2, and RFC 7662, section 2.3."""
    for headers in ({}, make_client(database).basic, service_role):
        answer = client.post(path, data="grant_type=x&token=x", content_type=kind, headers=headers)
        assert_refused(answer, "invalid_request", 415, FORM_NEEDED)
        assert (answer.json["error_code"], answer.json["code"]) == ("unsupported_media_type", 415)
        assert "JSON" in answer.json["msg"]
        assert "form" in answer.json["msg"]


def test_introspection_without_a_token_is_an_invalid_request(client, database, service_role):
    for headers in (make_client(database).basic, service_role):
        answer = client.post("/introspect", data={}, headers=headers)
        assert_refused(answer, "invalid_request", 400, "token: is required")


def test_each_401_of_a_client_that_used_basic_has_a_realm(client, database):
    """RFC 7617, section 2."""
    body = {"grant_type": "refresh_token", "refresh_token": "x", "token": "x"}
    unknown = {"Authorization": "Basic " + "dW5rbm93bjp4"}
    for path in ("/oauth/token", "/oauth/device_authorization", "/oauth/revoke", "/introspect"):
        for headers in (unknown, {"Authorization": "Basic é"}):
            answer = client.post(path, data=body, headers=headers)
            assert_refused(answer, "invalid_client", 401)
            assert answer.headers["WWW-Authenticate"] == 'Basic realm="latchkey"'


@pytest.mark.parametrize(
    ("token", "error_code"),
    [(None, "no_authorization"), ("nonsense", "bad_jwt"), ("é", "bad_jwt"), ("", "bad_jwt")],
)
def test_each_401_about_a_token_has_a_realm_and_an_error_if_there_was_one(client, token, error_code):
    """RFC 6750, section 3."""
    headers = {} if token is None else {"Authorization": f"Bearer {token}"}
    for path in ("/user", "/oauth/userinfo", "/admin/users", "/sessions", f"/oauth/authorizations/{NO_ID}"):
        answer = client.get(path, headers=headers)
        assert (answer.status_code, answer.json["error_code"]) == (401, error_code), path
        assert answer.headers["WWW-Authenticate"] == challenge(error_code)


def test_ended_session_is_an_invalid_token_and_a_wrong_password_is_none(client, alice):
    session = alice.open_session()
    client.post("/logout", headers=session.authorization)
    ended = client.get("/user", headers=session.authorization)
    assert ended.headers["WWW-Authenticate"] == 'Bearer realm="latchkey", error="invalid_token"'
    wrong = client.post("/token?grant_type=password", json={"email": alice.email, "password": "Wrong-1234"})
    assert (wrong.status_code, wrong.headers["WWW-Authenticate"]) == (401, 'Bearer realm="latchkey"')
