"""Errors at the endpoints of applications, as the RFCs have them: the members, and the challenges of a 401."""

import re
from typing import Any

import pytest

from auth.core.settings import names
from auth.web.application import FORM
from tests.support.answers import NO_ID, challenge
from tests.support.cases import cases
from tests.support.openid import assert_refused, bearer, make_client, tokens_of

FORM_NEEDED = "Content-Type: must be application/x-www-form-urlencoded or application/json"
FORM_PATHS = (
    "/oauth/token",
    "/oauth/device_authorization",
    "/oauth/revoke",
    "/oauth/userinfo",
    "/introspect",
)


@cases("path", FORM_PATHS)
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


def test_ended_session_is_an_invalid_token_and_a_wrong_password_is_not(client, alice):
    session = alice.open_session()
    client.post("/logout", headers=session.authorization)
    ended = client.get("/user", headers=session.authorization)
    assert ended.headers["WWW-Authenticate"] == 'Bearer realm="latchkey", error="invalid_token"'
    wrong = client.post("/token?grant_type=password", json={"email": alice.email, "password": "Wrong-1234"})
    assert (wrong.status_code, wrong.headers["WWW-Authenticate"]) == (401, 'Bearer realm="latchkey"')


REGISTER = "/oauth/clients/register"
# The endpoints that OAuth libraries call, with a body that each takes.
BODIES: dict[str, dict[str, Any]] = {
    "/oauth/token": {"grant_type": "client_credentials"},
    "/oauth/device_authorization": {"scope": "openid"},
    "/oauth/revoke": {"token": "x"},
    "/oauth/userinfo": {},
    "/introspect": {"token": "x"},
    REGISTER: {"redirect_uris": ["https://app.example.com/callback"]},
}
LIMITED = [path for path in BODIES if path not in ("/oauth/userinfo", "/introspect")]
# RFC 6749, section 5.2.
_DESCRIPTION = re.compile(r"[ !#-\[\]-~]+")


@pytest.fixture
def ask(client, alice, database):
    """Send a request of an application, perhaps to another service on this database."""
    application = make_client(database)
    token = tokens_of(client, database, application, alice)["access_token"]

    def ask(path, http=client, **changes):
        headers = (
            bearer(token) if path == "/oauth/userinfo" else {} if path == REGISTER else application.basic
        )
        body = BODIES[path] | changes
        return http.post(path, headers=headers, **({"json": body} if path == REGISTER else {"data": body}))

    return ask


def assert_failed(response, error, status, error_code):
    assert_refused(response, error, status)
    assert _DESCRIPTION.fullmatch(response.json["error_description"])
    assert (response.json["code"], response.json["error_code"]) == (status, error_code)
    assert ("Retry-After" in response.headers) == (status in (429, 503))


@cases("path", BODIES)
def test_body_that_is_too_large_is_an_invalid_request(ask, path):
    assert_failed(ask(path, x="x" * 70_000), "invalid_request", 413, "request_entity_too_large")


@cases("path", FORM_PATHS)
@cases("form", [b"token=\xe9&grant_type=client_credentials", b"token=x" + b"&x=" * 100])
def test_form_that_cannot_be_read_is_not_said_to_lack_a_parameter(client, database, path, form):
    application = make_client(database)
    answer = client.post(path, data=form, content_type=FORM, headers=application.basic)
    if path == "/oauth/userinfo":
        assert answer.status_code == 401
    else:
        assert_refused(answer, "invalid_request", 400, "the form must be in UTF-8, with at most 100 fields")


@cases("path", LIMITED)
def test_client_beyond_a_limit_learns_when_to_come_back(make_app, ask, path):
    limits = {name: "1 per hour" for name in names() if name.startswith("AUTH_RATE_LIMIT_")}
    del limits["AUTH_RATE_LIMIT_STORAGE"]
    limited = make_app(**limits, AUTH_RATE_LIMITS_ENABLED="true").test_client()
    ask(path, limited)
    assert_failed(ask(path, limited), "temporarily_unavailable", 429, "over_request_rate_limit")


@cases("path", BODIES)
def test_client_learns_that_the_database_does_not_answer(make_app, ask, path):
    nowhere = {"DATABASE_URL": "postgresql://127.0.0.1:1/none", "AUTH_OAUTH_DYNAMIC_REGISTRATION": "true"}
    answer = ask(path, make_app(fresh=True, **nowhere).test_client())
    assert_failed(answer, "temporarily_unavailable", 503, "service_unavailable")


@cases("path", BODIES)
def test_failure_of_the_service_is_a_server_error(make_app, ask, database, path):
    http = make_app(AUTH_OAUTH_DYNAMIC_REGISTRATION="true").test_client()
    database.run("ALTER TABLE oauth_clients RENAME TO elsewhere")
    try:
        answer = ask(path, http)
    finally:
        database.run("ALTER TABLE elsewhere RENAME TO oauth_clients")
    assert_failed(answer, "server_error", 500, "unexpected_failure")


def test_refused_registration_and_request_of_a_foreign_page_are_access_denied(client, ask):
    response = ask(REGISTER)
    assert_failed(response, "access_denied", 403, "oauth_dynamic_client_registration_disabled")
    foreign = {"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "cors", "Origin": "https://evil.example"}
    answer = client.post("/oauth/device_authorization", data={}, headers=foreign)
    assert_failed(answer, "access_denied", 403, "origin_not_allowed")
    assert "WWW-Authenticate" not in answer.headers
