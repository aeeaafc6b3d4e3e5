"""POST /oauth/clients/register: dynamic client registration (RFC 7591)."""

import pytest

from tests.support.answers import A_CLIENT_SECRET, A_SENTENCE, assert_error, assert_ok, oauth_client
from tests.support.cases import cases

PATH = "/oauth/clients/register"
APP = "https://app.example.com/callback"
PUBLIC = {"client_type": "public", "token_endpoint_auth_method": "none"}
LOOPBACK = "http://127.0.0.1/callback"


@pytest.fixture
def register(make_app):
    client = make_app(AUTH_OAUTH_DYNAMIC_REGISTRATION="true").test_client()
    return lambda **body: client.post(PATH, json=body)


def test_public_client_registers_without_a_credential(register, database):
    agent = {"client_name": "Agent", "redirect_uris": [LOOPBACK], "token_endpoint_auth_method": "none"}
    expected = oauth_client(**agent, client_type="public", registration_type="dynamic")
    assert_ok(register(**agent), expected, 201)
    row = database.one("SELECT action, actor, user_id, details FROM audit_log")
    assert row[:3] == ("client_created", "anonymous", None)
    assert row.details == {"client_id": database.value("SELECT id FROM oauth_clients"), "client": "Agent"}


def test_secret_of_a_confidential_client_does_not_expire(register):
    expected = oauth_client(
        registration_type="dynamic", client_secret=A_CLIENT_SECRET, client_secret_expires_at=0
    )
    assert_ok(register(redirect_uris=[APP]), expected, 201)


@cases(
    ("name", "value"),
    [
        *(("skip_consent", True), ("require_pkce", False), ("introspects_sessions", True)),
        *(
            ("token_lifetime", 86_400),
            ("resources", ["urn:api"]),
            ("scopes", ["x"]),
            ("allowed_roles", ["x"]),
        ),
        *(
            ("software_id", "4NRB1"),
            ("contacts", ["a@example.com"]),
            ("is_dynamic", False),
            ("scope", "openid"),
        ),
        *(("response_types", ["token"]), ("client_id", "00000000-0000-0000-0000-000000000000")),
    ],
)
def test_strangers_members_and_those_of_other_standards_are_ignored(register, name, value):
    made = register(redirect_uris=[APP], client_type="public", **{name: value})
    assert_ok(made, oauth_client(registration_type="dynamic", **PUBLIC), 201)


def test_grants_that_strangers_may_not_have_are_left_out(register):
    asked = ["authorization_code", "urn:ietf:params:oauth:grant-type:device_code", "client_credentials"]
    assert register(redirect_uris=[APP], grant_types=asked).json["grant_types"] == ["authorization_code"]


@cases(
    ("body", "error", "description"),
    [
        ({}, "invalid_redirect_uri", "redirect_uris is required"),
        ({"redirect_uris": [APP] * 11}, "invalid_redirect_uri", "redirect_uris cannot exceed 10 items"),
        ({"redirect_uris": ["http://app.example.com"]}, "invalid_redirect_uri", A_SENTENCE),
        ({"redirect_uris": [APP], "logo_uri": "javascript:x"}, "invalid_client_metadata", A_SENTENCE),
        ({"redirect_uris": [APP], "grant_types": ["implicit"]}, "invalid_client_metadata", A_SENTENCE),
        ({"redirect_uris": [APP], "grant_types": "x"}, "invalid_client_metadata", A_SENTENCE),
        ({"redirect_uris": [APP], "client_name": "\u200b"}, "invalid_client_metadata", A_SENTENCE),
    ],
)
def test_refusals_have_the_form_of_oauth_and_ours(register, database, body, error, description):
    response = register(**body)
    members = {"error": error, "error_description": response.json["msg"]}
    assert_error(response, 400, "validation_failed", description, **members)
    assert database.count("oauth_clients") == 0


def test_body_that_is_no_json_is_refused_in_both_forms(make_app):
    client = make_app(AUTH_OAUTH_DYNAMIC_REGISTRATION="true").test_client()
    response = client.post(PATH, data="{", content_type="application/json")
    found = {name: response.json[name] for name in ("error", "error_code", "error_description")}
    assert found == {
        "error": "invalid_client_metadata",
        "error_code": "bad_json",
        "error_description": "the body must be valid JSON",
    }


def test_administrator_cannot_make_a_dynamic_client_trusted(register, make_app, service_role):
    made = register(redirect_uris=[APP]).json["client_id"]
    client = make_app().test_client()
    for change in (
        {"skip_consent": True},
        {"require_pkce": False},
        {"introspects_sessions": True},
        {"grant_types": ["client_credentials"]},
    ):
        response = client.put(f"/admin/oauth/clients/{made}", json=change, headers=service_role)
        assert_error(response, 400, "validation_failed")


def test_registration_is_off_by_default(client, database):
    response = client.post(PATH, json={"redirect_uris": [APP]})
    assert_error(response, 403, "oauth_dynamic_client_registration_disabled")
    assert database.count("oauth_clients") == 0


def test_registrations_of_a_network_are_limited(make_app):
    limited = {"AUTH_RATE_LIMITS_ENABLED": "true", "AUTH_RATE_LIMIT_CLIENT_REGISTRATION": "2 per 5 minutes"}
    client = make_app(AUTH_OAUTH_DYNAMIC_REGISTRATION="true", **limited).test_client()
    answers = [client.post(PATH, json={"redirect_uris": [APP]}).status_code for _ in range(3)]
    assert answers == [201, 201, 429]
