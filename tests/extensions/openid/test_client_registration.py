"""POST /oauth/clients/register: dynamic client registration (RFC 7591)."""

import re
from urllib.parse import urlsplit

import pytest

from auth.extensions.openid.clients import DEVICE_CODE
from tests.support.answers import A_CLIENT_SECRET, A_SENTENCE, assert_error, assert_ok, oauth_client
from tests.support.cases import cases
from tests.support.openid import authorize_path, grant, insert_public_client

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


IGNORED = {
    **{"skip_consent": True, "require_pkce": False, "introspects_sessions": True, "is_dynamic": False},
    **{"token_lifetime": 86_400, "resources": ["urn:api"], "scopes": ["x"], "allowed_roles": ["x"]},
    **{"software_id": "4NRB1", "contacts": ["a@example.com"], "scope": "openid", "response_types": ["token"]},
    "client_id": "00000000-0000-0000-0000-000000000000",
}


@cases("name", IGNORED)
def test_members_that_strangers_may_not_set_and_those_of_other_standards_are_ignored(register, name):
    response = register(redirect_uris=[APP], client_type="public", **{name: IGNORED[name]})
    assert_ok(response, oauth_client(registration_type="dynamic", **PUBLIC), 201)


EDITORS = [
    # The bodies of VS Code and Cursor.
    {
        "client_name": "Visual Studio Code",
        "client_uri": "https://code.visualstudio.com",
        "grant_types": ["authorization_code", "refresh_token", DEVICE_CODE],
        "response_types": ["code"],
        "redirect_uris": [
            "https://insiders.vscode.dev/redirect",
            "https://vscode.dev/redirect",
            "http://127.0.0.1/",
            "http://127.0.0.1:33418/",
        ],
        "scope": "openid email offline_access",
        "token_endpoint_auth_method": "none",
        "application_type": "native",
    },
    {
        "client_name": "Cursor",
        "grant_types": ["authorization_code", "refresh_token"],
        "response_types": ["code"],
        "redirect_uris": [
            "cursor://anysphere.cursor-mcp/oauth/callback",
            "https://www.cursor.com/agents/mcp/oauth/callback",
            "http://localhost:8787/callback",
        ],
        "token_endpoint_auth_method": "none",
    },
]


@cases("editor", EDITORS)
def test_editors_register_with_the_redirect_uris_that_they_use(register, client, editor):
    response = register(**editor)
    registered = response.status_code, response.json["redirect_uris"], response.json["grant_types"]
    assert registered == (201, editor["redirect_uris"], ["authorization_code", "refresh_token"])
    for uri in editor["redirect_uris"]:
        # VS Code takes another port if that one is in use.
        redirect = client.get(
            authorize_path(response.json["client_id"], redirect_uri=uri.replace("33418", "59656"))
        )
        assert (redirect.status_code, urlsplit(redirect.location).path) == (302, "/oauth/consent")


@cases("name", ["redirect_uris", "post_logout_redirect_uris"])
@cases(
    "uri", ["intent://scan/", "ms-settings://x/", "ftp://app.example/", "search-ms://x/", "myapp://callback"]
)
def test_scheme_that_any_program_may_have_is_refused(register, database, uri, name):
    response = register(**{"redirect_uris": [APP], name: [uri]})
    assert (response.status_code, response.json["error"]) == (400, "invalid_redirect_uri")
    assert database.count("oauth_clients") == 0


@cases(
    ("body", "error"),
    [
        ({"redirect_uris": [APP], "client_uri": "ftp://redirect_uri.example"}, "invalid_client_metadata"),
        ({"redirect_uris": [APP], "tos_uri": "redirect_uris: x"}, "invalid_client_metadata"),
        ({"redirect_uris": 7}, "invalid_redirect_uri"),
        ({"redirect_uris": [APP], "post_logout_redirect_uris": 7}, "invalid_redirect_uri"),
        ({"redirect_uris": []}, "invalid_redirect_uri"),
    ],
)
def test_error_names_the_member_and_not_what_the_client_wrote(register, body, error):
    response = register(**body)
    assert (response.status_code, response.json["error"]) == (400, error)


NOT_ASCII = 'https://ü.example/"\\’\n'


@cases(
    ("body", "description"),
    [
        ({"redirect_uris": [NOT_ASCII]}, "redirect_uris: it has a character that a URI may not have"),
        (
            {"redirect_uris": ["ftp://app.example/ü"]},
            "redirect_uris: it has a character that a URI may not have",
        ),
        (
            {"redirect_uris": ["javascript:x"]},
            "redirect_uris: the scheme javascript does not lead to an application",
        ),
        (
            {"redirect_uris": [APP], "logo_uri": NOT_ASCII},
            "logo_uri: it has a character that a URI may not have",
        ),
        ({"redirect_uris": [APP], "client_name": "x" * 2000}, A_SENTENCE),
        ({"redirect_uris": [APP], "token_endpoint_auth_method": NOT_ASCII}, A_SENTENCE),
        ({"redirect_uris": [APP], "grant_types": [NOT_ASCII]}, A_SENTENCE),
        ({"redirect_uris": [APP], "client_type": NOT_ASCII}, A_SENTENCE),
        ({"redirect_uris": NOT_ASCII}, A_SENTENCE),
    ],
)
def test_description_is_ascii_and_repeats_nothing_that_the_client_wrote(register, body, description):
    """RFC 7591, section 3.2.2, with the characters of RFC 6749, section 5.2."""
    response = register(**body)
    told = response.json["error_description"]
    assert (response.status_code, told) == (400, description)
    assert re.fullmatch(r"[ !#-\[\]-~]+", told)
    assert "example" not in told


def test_operator_chooses_the_schemes_and_is_not_bound_by_them(make_app, service_role):
    schemes = {"AUTH_OAUTH_DYNAMIC_REGISTRATION": "true", "AUTH_OAUTH_REDIRECT_SCHEMES": "myapp"}
    http = make_app(**schemes).test_client()
    responses = [
        http.post(PATH, json={"redirect_uris": [f"{scheme}://x/"]}) for scheme in ("myapp", "cursor")
    ]
    body = {"redirect_uris": ["cursor://x/"]}
    responses.append(http.post("/admin/oauth/clients", json=body, headers=service_role))
    assert [response.status_code for response in responses] == [201, 400, 201]


def test_thousand_newest_clients_that_nobody_allows_are_kept(register, database, alice):
    oldest = [insert_public_client(database, is_dynamic=True) for _ in range(4)]
    grant(database, alice.id, oldest[0])
    database.run(
        "INSERT INTO oauth_requests (id_hash, client_id, browser_hash, redirect_uri, scopes, expires_at)"
        " VALUES ('', %(requested)s, '', '', '{}', now() + interval '1 hour')",
        requested=oldest[1],
    )
    insert_public_client(database)
    database.run(
        "INSERT INTO oauth_clients (is_dynamic, token_endpoint_auth_method, redirect_uris, grant_types)"
        " SELECT true, 'none', '{}', '{refresh_token}' FROM generate_series(1, 998)"
    )
    assert register(redirect_uris=[APP], client_type="public").status_code == 201
    # One allowed, one asked for, one by the operator; and the newest thousand, of which one is of `oldest`.
    counts = [database.count("oauth_clients", "id = %(id)s", id=id) for id in oldest]
    assert (counts, database.count("oauth_clients")) == ([1, 1, 0, 1], 1003)
    assert database.count("audit_log", "action = 'client_deleted'") == 1


def test_grants_that_strangers_may_not_have_are_left_out(register):
    grant_types = ["authorization_code", DEVICE_CODE, "client_credentials"]
    assert register(redirect_uris=[APP], grant_types=grant_types).json["grant_types"] == [
        "authorization_code"
    ]


@cases(
    ("body", "error", "description"),
    [
        ({}, "redirect_uri", "redirect_uris is required"),
        ({"redirect_uris": [APP] * 11}, "redirect_uri", "redirect_uris cannot exceed 10 items"),
        ({"redirect_uris": ["http://app.example.com"]}, "redirect_uri", A_SENTENCE),
        ({"logo_uri": "javascript:x"}, "client_metadata", A_SENTENCE),
        ({"grant_types": ["implicit"]}, "client_metadata", A_SENTENCE),
        ({"token_endpoint_auth_method": "private_key_jwt"}, "client_metadata", A_SENTENCE),
        (
            {"grant_types": ["client_credentials"]},
            *("client_metadata", "grant_types: authorization_code is missing, which a registration needs"),
        ),
        ({"client_name": "\u200b"}, "client_metadata", A_SENTENCE),
    ],
)
def test_refusals_have_the_form_of_oauth_and_ours(register, database, body, error, description):
    response = register(**{"redirect_uris": [APP]} | body if body else {})
    members = {"error": f"invalid_{error}", "error_description": A_SENTENCE}
    assert_error(response, 400, "validation_failed", description, **members)
    assert database.count("oauth_clients") == 0


def test_administrator_cannot_make_a_dynamic_client_trusted(register, make_app, service_role):
    client_id = register(redirect_uris=[APP]).json["client_id"]
    client = make_app().test_client()
    for change in (
        {"skip_consent": True},
        {"require_pkce": False},
        {"introspects_sessions": True},
        {"grant_types": ["client_credentials"]},
        {"grant_types": [DEVICE_CODE]},
    ):
        response = client.put(f"/admin/oauth/clients/{client_id}", json=change, headers=service_role)
        assert_error(response, 400, "validation_failed")


def test_registration_is_off_by_default(client, database):
    response = client.post(PATH, json={"redirect_uris": [APP]})
    members = {"error": "access_denied", "error_description": A_SENTENCE}
    assert_error(response, 403, "oauth_dynamic_client_registration_disabled", **members)
    assert database.count("oauth_clients") == 0


def test_registrations_of_a_network_are_limited(make_app):
    limited = {"AUTH_RATE_LIMITS_ENABLED": "true", "AUTH_RATE_LIMIT_CLIENT_REGISTRATION": "2 per 5 minutes"}
    client = make_app(AUTH_OAUTH_DYNAMIC_REGISTRATION="true", **limited).test_client()
    answers = [client.post(PATH, json={"redirect_uris": [APP]}).status_code for _ in range(3)]
    assert answers == [201, 201, 429]
