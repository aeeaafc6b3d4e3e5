"""The log of refusals whose cause the client cannot see has the reason and the setting, but no secrets."""

import json
import re

import pytest

from tests.support.cases import cases
from tests.support.fake_provider import Answer
from tests.support.oauth import APPLICATION
from tests.support.openid import Client, authorize_path, make_client

pytest_plugins = ["tests.support.oauth_fixtures"]
BROWSER = {"Accept": "text/html"}
EVIL = "https://evil.example/path?token=a-token-of-a-link"


@pytest.fixture
def lines_of(capfd):
    """Return a function that returns the lines of the log with an event."""

    def read(event: str) -> list[str]:
        lines = [json.loads(line) for line in capfd.readouterr().err.splitlines() if line.startswith("{")]
        return [str(line) for line in lines if line["event"] == event]

    return read


@cases("path", ["/magiclink", "/sign-in", "/authorize"])
def test_redirect_that_is_not_allowed_names_the_setting(service, acme, lines_of, path):
    query = {"provider": "acme", "redirect_to": EVIL}
    if path == "/magiclink":
        service.client.post(path, json={"email": "alice@example.com", "redirect_to": EVIL})
    else:
        service.client.get(path, query_string=query if path == "/authorize" else {"redirect_to": EVIL})
    line, *_ = lines_of("redirect_not_allowed")
    assert "AUTH_REDIRECT_ALLOW_LIST" in line
    assert "'host': 'evil.example'" in line
    assert "a-token-of-a-link" not in line


@cases(
    "headers",
    [
        {"Authorization": "Bearer a-wrong-service-role-key"},
        {"apikey": "a-wrong-service-role-key"},
        {"Authorization": "Bearer a.jwt.of-another-service"},
    ],
)
def test_wrong_service_role_key_names_the_setting(client, lines_of, headers):
    response = client.get("/admin/users", headers=headers)
    assert (response.status_code, response.json["error_code"]) == (401, "bad_jwt")
    is_jwt = "jwt" in str(headers)
    assert response.json["msg"].startswith("invalid JWT" if is_jwt else "The service role key is invalid")
    (line,) = lines_of("service_role_key_not_valid")
    assert "AUTH_SERVICE_ROLE_KEY" in line
    assert not any(word in line for word in ("a-wrong-service-role-key", "of-another-service"))


def test_message_beyond_the_quota_is_logged_and_printed(make_app, alice, lines_of, capfd):
    client, bodies = make_app(AUTH_RATE_LIMITS_ENABLED="true").test_client(), []
    for _ in range(2):
        bodies.append(client.post("/magiclink", json={"email": alice.email}).json)
    assert [body["message"] for body in bodies] == [bodies[0]["message"]] * 2
    (line,) = lines_of("message_not_sent")
    reason = r"not sent: 1 per minute \(AUTH_RATE_LIMIT_MESSAGES\); the next at \d\d:\d\d:\d\d UTC"
    assert re.search(reason, line)
    assert alice.email not in line
    client.post("/magiclink", json={"email": alice.email})
    assert re.match(f"To {alice.email}: {reason}\n", capfd.readouterr().out)


class TestProvider:
    def test_wrong_secret_is_logged_with_the_providers_error(self, make_service, acme, lines_of):
        service = make_service(AUTH_PROVIDER_ACME_CLIENT_SECRET="a-wrong-secret")
        service.sign_in("acme", redirect_to=APPLICATION)
        (line,) = lines_of("provider_failed")
        assert "invalid_client at the token or userinfo endpoint" in line

    def test_description_is_bounded_and_contains_no_secret(self, make_service, acme, lines_of):
        description = f"Bad\x1b[31m\nsecret {acme.client_secret} for code-{'x' * 40}. {'Much text. ' * 100}"
        body = json.dumps({"error": "invalid_client", "error_description": description}).encode()
        headers = {"Content-Type": "application/json"}
        acme.instead = {acme.TOKEN: Answer(401, body, headers)}
        make_service().sign_in("acme", redirect_to=APPLICATION)
        (line,) = lines_of("provider_failed")
        assert "invalid_client: Bad [31m secret … for … Much text." in line
        assert len(line) < 600


class TestAuthorizationRequest:
    """The user sees an error of the application or a page, and the operator must fix it."""

    @cases(
        ("changes", "reason", "remedy"),
        [
            (
                {"code_challenge": None, "code_challenge_method": None},
                "code_challenge is required",
                "--no-pkce",
            ),
            ({"code_challenge_method": "plain"}, "code_challenge_method must be S256", "S256 in the"),
            ({"redirect_uri": EVIL}, "redirect_uri: must be one", "clients update {} --redirect-uri URI"),
            ({"resource": "https://x.example"}, "resource must be one", "clients update {} --resource URI"),
        ],
    )
    def test_refusal_names_client_reason_and_remedy(
        self, client, database, lines_of, changes, reason, remedy
    ):
        id = make_client(database).id
        response = client.get(authorize_path(id, **changes))
        assert response.status_code in (302, 400)
        (line,) = lines_of("authorization_request_refused")
        assert f"'client_id': '{id}'" in line
        assert (reason in line, remedy.format(id) in line, "'level': 'warning'" in line) == (True, True, True)
        assert "a-token-of-a-link" not in line

    def test_log_line_bounds_what_a_stranger_sends(self, client, database, lines_of):
        for id in ("\x1b[31m\r\n" + "x" * 2000, make_client(database).id):
            client.get(authorize_path(id, redirect_uri="https://evil.example/" + "y" * 2000))
        unknown, unregistered = lines_of("authorization_request_refused")
        assert "unknown client_id" in unknown
        assert "https://evil.example/y" in unregistered
        assert (len(unknown) < 700, len(unregistered) < 1000) == (True, True)


def test_other_method_names_the_command_that_allows_it(client, database, lines_of):
    registered_method, used_method = "client_secret_basic", "client_secret_post"
    app_client = make_client(database, token_endpoint_auth_method=registered_method)
    response = Client(app_client.id, app_client.secret, used_method).redeem(client, "a-code")
    assert (response.status_code, response.json["error"]) == (401, "invalid_client")
    (line,) = lines_of("client_not_authenticated")
    assert f"'client_id': '{app_client.id}'" in line
    assert f"choose {registered_method} in the application" in line
    assert f"latchkey clients update {app_client.id} --method {used_method}" in line
    assert app_client.secret not in line
