"""CORS (AUTH_CORS_ORIGINS)."""

import pytest

from auth.web.routes import route_of
from tests.support.cases import cases
from tests.support.openid import insert_public_client

ALLOWED = {"authorization", "apikey", "content-type", "x-request-id"}
ALLOWED |= {"x-client-info", "x-supabase-api-version"}
EXPOSED = {f"x-ratelimit-{name}" for name in ("limit", "remaining", "reset")}
EXPOSED |= {"retry-after", "x-request-id", "x-total-count", "link"}
APP = "https://app.example.com"
ORIGIN = {"Origin": APP}
HEADERS = "authorization, content-type"


def names(header):
    return {name.strip().lower() for name in header.split(",")}


def preflight(client, path="/token", method="POST", headers=HEADERS, origin=APP):
    asked = {"Origin": origin, "Access-Control-Request-Method": method}
    return client.options(path, headers=asked | {"Access-Control-Request-Headers": headers})


def test_any_origin_may_read_responses_and_errors_without_credentials(client):
    for status, response in {
        200: client.get("/health", headers=ORIGIN),
        400: client.post("/magiclink", json={}, headers=ORIGIN),
        401: client.get("/user", headers=ORIGIN),
        404: client.get("/nothing", headers=ORIGIN),
        405: client.put("/token", headers=ORIGIN),
        415: client.post("/token", data="x", headers=ORIGIN),
    }.items():
        assert response.status_code == status
        assert response.headers["Access-Control-Allow-Origin"] == "*"
        assert names(response.headers["Access-Control-Expose-Headers"]) == EXPOSED
        assert "Access-Control-Allow-Credentials" not in response.headers


@cases(
    ("path", "method"),
    [
        *(("/user", method) for method in ("GET", "PUT", "DELETE")),
        *(("/token", "POST"), ("/auth/v1/signup", "POST"), ("/sessions/x", "DELETE")),
    ],
)
def test_preflight_allows_the_methods_of_the_route(client, path, method):
    response = preflight(client, path, method, ", ".join(sorted(ALLOWED)))
    assert response.status_code == 200
    assert response.headers["Access-Control-Allow-Origin"] == "*"
    assert method in response.headers["Access-Control-Allow-Methods"]
    assert names(response.headers["Access-Control-Allow-Headers"]) == ALLOWED
    assert int(response.headers["Access-Control-Max-Age"]) > 0
    assert "Access-Control-Allow-Credentials" not in response.headers


def test_preflight_does_not_allow_other_headers(client):
    response = preflight(client, headers="authorization, x-evil")
    assert names(response.headers["Access-Control-Allow-Headers"]) == {"authorization"}


# With answers of several kinds, also to the wrong method.
AUTHORIZATION = [
    *((method, path) for path in ("/authorize", "/oauth/authorize") for method in ("GET", "POST", "PUT")),
    *((method, path) for path in ("/callback", "/oauth/continue") for method in ("GET", "PUT")),
    ("GET", "/authorize?provider=google&skip_http_redirect=true"),
]


@pytest.mark.parametrize("prefix", ["", "/auth/v1"])
@pytest.mark.parametrize("origins", ["*", APP])
def test_no_origin_may_read_the_authorization_endpoints(make_app, prefix, origins):
    app = make_app(AUTH_CORS_ORIGINS=origins)
    assert {path.partition("?")[0] for _, path in AUTHORIZATION} <= {
        rule.rule for rule in app.url_map.iter_rules()
    }
    client = app.test_client()
    assert client.get(f"{prefix}/health", headers=ORIGIN).headers["Access-Control-Allow-Origin"] == origins
    for method, path in AUTHORIZATION:
        answer = client.open(prefix + path, method=method, headers=ORIGIN)
        for each in (answer, preflight(client, prefix + path, method)):
            assert [name for name, _ in each.headers if name.startswith("Access-Control-")] == []


def test_routes_that_clients_call_from_browsers_are_for_any_origin(app):
    well_known = ("openid-configuration", "oauth-authorization-server", "jwks.json")
    of_clients = {*(f"/.well-known/{name}" for name in well_known), "/oauth/clients/register"}
    of_clients |= {f"/.well-known/{name}/<path:issuer_path>" for name in well_known[:2]}
    of_clients |= {"/oauth/token", "/oauth/userinfo", "/oauth/revoke"}
    views = {rule.rule: app.view_functions[rule.endpoint] for rule in app.url_map.iter_rules()}
    found = {rule for rule, view in views.items() if route_of(view).any_origin}
    assert found == of_clients & set(views)


class TestConfiguredOrigins:
    @pytest.fixture
    def client(self, make_app):
        return make_app(AUTH_CORS_ORIGINS="https://app.example.com,http://localhost:3000").test_client()

    @pytest.mark.parametrize("origin", ["https://app.example.com", "http://localhost:3000"])
    def test_configured_origin_may_read_responses(self, client, origin):
        for response in (client.get("/health", headers={"Origin": origin}), preflight(client, origin=origin)):
            assert response.headers["Access-Control-Allow-Origin"] == origin
            assert "Origin" in response.headers["Vary"]

    @pytest.mark.parametrize(
        "origin",
        [
            *("https://evil.example", f"{APP}.evil.example", f"https://evil.example/{APP}", "null"),
            *("http://app.example.com", "https://appxexample.com", f"{APP}:8443"),
        ],
    )
    def test_other_origin_may_not_read_responses(self, client, origin):
        # Served anyway: CORS is not access control.
        response = client.get("/health", headers={"Origin": origin})
        assert response.status_code == 200
        for each in (response, preflight(client, origin=origin)):
            assert "Access-Control-Allow-Origin" not in each.headers

    @pytest.mark.parametrize("origin", [APP, "https://evil.example", "null"])
    def test_any_origin_may_read_what_clients_need(self, client, origin):
        path, unusual = "/.well-known/openid-configuration", "mcp-protocol-version"
        answers = [
            client.get(path, headers={"Origin": origin}),
            preflight(client, path, "GET", unusual, origin),
        ]
        tag = {"Origin": origin, "If-None-Match": answers[0].headers["ETag"]}
        answers += [client.get(path, headers=tag), client.get(f"{path}/no", headers=tag)]
        assert [answer.status_code for answer in answers] == [200, 200, 304, 404]
        for each in answers:
            assert each.headers["Access-Control-Allow-Origin"] == "*"
            assert "Access-Control-Allow-Credentials" not in each.headers
        assert names(answers[1].headers["Access-Control-Allow-Headers"]) == {unusual}

    def test_any_origin_may_use_the_token_endpoint_but_not_consent(self, client, database):
        form = {"grant_type": "authorization_code", "client_id": insert_public_client(database), "code": "x"}
        evil = {"Origin": "https://evil.example"}
        refused = client.post("/oauth/token", data=form, headers=evil)
        assert (refused.status_code, refused.json["error"]) == (400, "invalid_grant")
        for each in (refused, preflight(client, "/oauth/token", origin=evil["Origin"])):
            assert each.headers["Access-Control-Allow-Origin"] == "*"
        for path in (f"/oauth/authorizations/{'x' * 43}", "/user/oauth/grants"):
            for each in (
                client.get(path, headers=evil),
                preflight(client, path, "GET", origin=evil["Origin"]),
            ):
                assert "Access-Control-Allow-Origin" not in each.headers
