"""The log of refusals whose cause the client cannot see has the reason and the setting, but no secrets."""

import json
import re

import pytest

from tests.support.cases import cases
from tests.support.fake_provider import Answer
from tests.support.oauth import APPLICATION, SITE
from tests.support.openid import Client, authorize_path, make_client
from tests.support.pages import Visitor

pytest_plugins = ["tests.support.oauth_fixtures"]
BROWSER = {"Accept": "text/html"}
PUBLIC = {"AUTH_BASE_URL": "https://auth.example.com"}
EVIL = "https://evil.example/path?token=a-token-of-a-link"


@pytest.fixture
def said(capfd):
    """Return the reasons that the log gives for an event."""

    def read(event: str) -> list[str]:
        lines = [json.loads(line) for line in capfd.readouterr().err.splitlines() if line.startswith("{")]
        return [str(line) for line in lines if line["event"] == event]

    return read


@cases("path", ["/magiclink", "/sign-in", "/authorize"])
def test_redirect_that_is_not_allowed_names_the_setting(service, acme, said, path):
    query = {"provider": "acme", "redirect_to": EVIL}
    if path == "/magiclink":
        service.client.post(path, json={"email": "alice@example.com", "redirect_to": EVIL})
    else:
        service.client.get(path, query_string=query if path == "/authorize" else {"redirect_to": EVIL})
    line, *_ = said("redirect_not_allowed")
    assert "AUTH_REDIRECT_ALLOW_LIST" in line
    assert "'host': 'evil.example'" in line
    assert "a-token-of-a-link" not in line


def test_malformed_code_challenge_is_logged_and_on_a_local_page(service, make_service, said):
    reason = "code_challenge: must be the SHA-256 of the verifier in base64url, 43 characters"
    path = "/authorize?provider=acme&code_challenge=short"
    page = service.client.get(path, headers=BROWSER)
    assert (page.status_code, reason in page.text) == (400, True)
    assert reason in said("code_challenge_not_valid")[0]
    page = make_service(**PUBLIC).client.get(path, headers=BROWSER)
    assert (page.status_code, reason in page.text) == (400, False)


@cases(
    "headers",
    [
        {"Authorization": "Bearer a-wrong-service-role-key"},
        {"apikey": "a-wrong-service-role-key"},
        {"Authorization": "Bearer a.jwt.of-another-service"},
    ],
)
def test_wrong_service_role_key_names_the_setting(client, said, headers):
    response = client.get("/admin/users", headers=headers)
    assert (response.status_code, response.json["error_code"]) == (401, "bad_jwt")
    is_jwt = "jwt" in str(headers)
    assert response.json["msg"].startswith("invalid JWT" if is_jwt else "The service role key is invalid")
    (line,) = said("service_role_key_not_valid")
    assert "AUTH_SERVICE_ROLE_KEY" in line
    assert not any(word in line for word in ("a-wrong-service-role-key", "of-another-service"))


def test_message_beyond_the_quota_is_logged_printed_and_in_the_development_inbox(
    make_app, alice, said, service_role, capfd
):
    app = make_app(AUTH_RATE_LIMITS_ENABLED="true", AUTH_DEV_INBOX="true")
    client, bodies = app.test_client(), []
    for _ in range(2):
        bodies.append(client.post("/magiclink", json={"email": alice.email}).json)
    assert [body["message"] for body in bodies] == [bodies[0]["message"]] * 2
    (line,) = said("message_not_sent")
    reason = r"not sent: 1 per minute \(AUTH_RATE_LIMIT_MESSAGES\); the next at \d\d:\d\d:\d\d UTC"
    assert re.search(reason, line)
    assert alice.email not in line
    (unsent,) = client.get(f"/dev/inbox?recipient={alice.email}", headers=service_role).json
    assert (unsent["outcome"], bool(re.fullmatch(reason, unsent["last_error"]))) == ("failed", True)
    assert client.get("/dev/inbox?recipient=another@example.com", headers=service_role).json == []
    assert "not sent: 1 per minute" in client.get("/dev/inbox", headers=BROWSER | service_role).text
    # Without the inbox, nothing is kept.
    make_app(AUTH_RATE_LIMITS_ENABLED="true").test_client().post("/magiclink", json={"email": alice.email})
    assert len(client.get("/dev/inbox", headers=service_role).json) == 1
    assert re.match(f"To {alice.email}: {reason}\n", capfd.readouterr().out)


@pytest.mark.parametrize(
    ("path", "body", "reason"),
    [
        ("/recover", {"email": "nobody@example.com"}, "no user has this address"),
        ("/otp", {"phone": "+4915112345678", "create_user": False}, "no user has this address"),
        ("/resend", {"email": "alice@example.com", "type": "signup"}, "the user of this address is banned or needs none"),
    ],
)  # fmt: skip
def test_message_that_nobody_gets_is_told_to_the_developer_alone(
    make_app, alice, said, service_role, capfd, path, body, reason
):
    client, public = make_app(AUTH_DEV_INBOX="true").test_client(), make_app(**PUBLIC).test_client()
    address = body.get("email") or body["phone"]
    assert client.post(path, json=body).status_code == 200
    (unsent,) = client.get("/dev/inbox", headers=service_role).json
    told = (unsent["kind"], unsent["recipient"], unsent["outcome"], unsent["last_error"])
    assert told == ("none", address, "failed", f"not sent: {reason}")
    assert f"To {address}: not sent: {reason}\n" in capfd.readouterr().out
    assert public.post("/recover", json={"email": "nobody@example.com"}).status_code == 200
    assert (capfd.readouterr().out, said("message_not_sent")) == ("", [])


@pytest.mark.parametrize(
    ("settings", "limit"),
    [
        (
            {"MESSAGES": "9 per minute", "MESSAGES_PER_RECIPIENT": "1 per hour"},
            "1 per hour (AUTH_RATE_LIMIT_MESSAGES_PER_RECIPIENT)",
        ),
        (
            {"MAIL_TOTAL": "1 per 2 hours", "MESSAGES": "9 per minute"},
            "this network's tenth of 1 per 7200 seconds (AUTH_RATE_LIMIT_MAIL_TOTAL)",
        ),
    ],
)
def test_message_beyond_a_limit_names_that_limit_and_when_the_next_may_be(make_app, said, settings, limit):
    named = {f"AUTH_RATE_LIMIT_{name}": value for name, value in settings.items()}
    client = make_app(AUTH_RATE_LIMITS_ENABLED="true", **named).test_client()
    bodies = [client.post("/magiclink", json={"email": "nobody@example.com"}).json for _ in range(2)]
    assert bodies[0]["message"] == bodies[1]["message"]
    (line,) = said("message_not_sent")
    assert f"not sent: {limit}; the next at " in line


class TestProvider:
    def test_wrong_secret_is_logged_with_the_providers_error(self, make_service, acme, said):
        service = make_service(AUTH_PROVIDER_ACME_CLIENT_SECRET="a-wrong-secret")
        service.sign_in("acme", redirect_to=APPLICATION)
        (line,) = said("provider_failed")
        assert "invalid_client at the token or userinfo endpoint" in line

    def test_description_is_bounded_and_contains_no_secret(self, make_service, acme, said):
        description = f"Bad\x1b[31m\nsecret {acme.client_secret} for code-{'x' * 40}. {'Much text. ' * 100}"
        body = json.dumps({"error": "invalid_client", "error_description": description}).encode()
        headers = {"Content-Type": "application/json"}
        acme.instead = {acme.TOKEN: Answer(401, body, headers)}
        make_service().sign_in("acme", redirect_to=APPLICATION)
        (line,) = said("provider_failed")
        assert "invalid_client: Bad [31m secret … for … Much text." in line
        assert len(line) < 600

    def test_refusal_of_a_request_is_logged_unless_the_user_refused(self, make_service, acme, said):
        for error, count in (("access_denied", 0), ("invalid_scope", 1)):
            acme.response = {"code": None, "error": error, "error_description": "no scope x"}
            make_service().sign_in("acme", redirect_to=APPLICATION)
            lines = said("provider_failed")
            assert (len(lines), all("invalid_scope: no scope x" in line for line in lines)) == (count, True)

    @pytest.mark.parametrize(("base_url", "is_shown"), [(SITE, True), (PUBLIC["AUTH_BASE_URL"], False)])
    def test_reason_is_on_the_page_of_a_local_service_alone(self, make_service, acme, base_url, is_shown):
        changes = {"AUTH_BASE_URL": base_url, "AUTH_PROVIDER_ACME_CLIENT_SECRET": "a-wrong-secret"}
        visitor = Visitor(make_service(**changes).app, base_url)
        visitor.visit("/sign-in")
        page = visitor.click(f"{base_url}/authorize?provider=acme&redirect_to={base_url}/sign-in")
        assert "The provider didn’t sign you in." in page.text
        assert ("invalid_client" in page.text) == is_shown
        told = {"error_code": "bad_oauth_callback", "reason": "invalid_client"}
        visitor.visit(f"/sign-in?{visitor.told(**told)}")
        assert ("invalid_client" in visitor.page.text) == is_shown


class TestAuthorizationRequest:
    """The user sees an error of the application or a page, and the operator must fix it."""

    @cases(
        ("columns", "changes", "reason", "remedy"),
        [
            (
                {},
                {"code_challenge": None, "code_challenge_method": None},
                "code_challenge is required",
                "turn on PKCE with S256 in the application, or: latchkey clients update {} --no-pkce",
            ),
            ({}, {"code_challenge_method": "plain"}, "code_challenge_method must be S256", "S256 in the"),
            ({}, {"redirect_uri": EVIL}, "redirect_uri: must be one", "clients update {} --redirect-uri URI"),
            (
                {},
                {"resource": "https://x.example"},
                "resource must be one",
                "clients update {} --resource URI",
            ),
            (
                {"grant_types": ["client_credentials"]},
                {},
                "not registered for authorization_code",
                "latchkey clients update {} --grant authorization_code",
            ),
        ],
    )
    def test_refusal_names_client_reason_and_remedy(
        self, client, database, said, columns, changes, reason, remedy
    ):
        id = make_client(database, **columns).id
        response = client.get(authorize_path(id, **changes))
        assert response.status_code in (302, 400)
        (line,) = said("authorization_request_refused")
        assert f"'client_id': '{id}'" in line
        assert (reason in line, remedy.format(id) in line, "'level': 'warning'" in line) == (True, True, True)
        assert "a-token-of-a-link" not in line

    @cases("columns", [{"token_endpoint_auth_method": "none"}, {"is_dynamic": True}])
    def test_client_that_always_needs_pkce_is_not_offered_to_go_without(
        self, client, database, said, columns
    ):
        id = make_client(database, **columns).id
        client.get(authorize_path(id, code_challenge=None, code_challenge_method=None))
        (line,) = said("authorization_request_refused")
        assert ("turn on PKCE" in line, "--no-pkce" in line) == (True, False)

    def test_request_log_has_the_error(self, client, database, said):
        client.get(authorize_path(make_client(database).id, response_type="token"))
        (line,) = said("request")
        assert "'error_code': 'unsupported_response_type'" in line

    def test_what_a_stranger_sends_is_bounded(self, client, database, said):
        for id in ("\x1b[31m\r\n" + "x" * 2000, make_client(database).id):
            client.get(authorize_path(id, redirect_uri="https://evil.example/" + "y" * 2000))
        unknown, unregistered = said("authorization_request_refused")
        assert "unknown client_id" in unknown
        assert "https://evil.example/y" in unregistered
        assert (len(unknown) < 700, len(unregistered) < 1000) == (True, True)

    def test_answers_that_users_choose_are_not_logged(self, client, database, said):
        client.get(authorize_path(make_client(database).id))
        client.get(authorize_path(make_client(database).id, prompt="none"))
        assert said("authorization_request_refused") == []


class TestClientAuthentication:
    @cases(
        ("registered", "used"),
        [("client_secret_basic", "client_secret_post"), ("client_secret_post", "client_secret_basic")],
    )
    def test_other_method_names_the_command_that_allows_it(self, client, database, said, registered, used):
        app_client = make_client(database, token_endpoint_auth_method=registered)
        response = Client(app_client.id, app_client.secret, used).redeem(client, "a-code")
        assert (response.status_code, response.json["error"]) == (401, "invalid_client")
        (line,) = said("client_not_authenticated")
        assert f"'client_id': '{app_client.id}'" in line
        assert f"choose {registered} in the application" in line
        assert f"latchkey clients update {app_client.id} --method {used}" in line
        assert app_client.secret not in line

    def test_both_methods_at_once_are_refused_and_logged(self, client, database, said):
        app_client = make_client(database)
        both = {"client_id": app_client.id, "client_secret": app_client.secret, "grant_type": "refresh_token"}
        response = client.post("/oauth/token", data=both, headers=app_client.basic)
        assert (response.status_code, response.json["error"]) == (400, "invalid_request")
        (line,) = said("client_not_authenticated")
        assert ("by HTTP Basic or in the form" in line, app_client.id in line) == (True, True)
        assert app_client.secret not in line

    def test_wrong_secret_names_the_command_that_makes_a_new_one(self, client, database, said):
        id = make_client(database).id
        Client(id, "a-wrong-secret").redeem(client, "a-code")
        (line,) = said("client_not_authenticated")
        assert f"latchkey clients rotate {id}" in line
        assert "a-wrong-secret" not in line
