"""CORS (AUTH_CORS_ORIGINS)."""

import pytest

from auth.web.declarations import route_of
from tests.support.cases import cases

ALLOWED = {"authorization", "apikey", "content-type", "x-request-id"}
ALLOWED |= {"x-client-info", "x-supabase-api-version"}
EXPOSED = {f"x-ratelimit-{name}" for name in ("limit", "remaining", "reset")}
EXPOSED |= {
    "retry-after",
    "www-authenticate",
    "x-request-id",
    "x-total-count",
    "link",
    "x-supabase-api-version",
}
APP, EVIL, MACHINE = "https://app.example.com", "https://evil.example", "http://localhost:3000"
ALLOW_ORIGIN = "Access-Control-Allow-Origin"


def names(header):
    return {name.strip().lower() for name in header.split(",")}


def preflight(client, path="/token", method="POST", headers="authorization, content-type", origin=APP):
    request_headers = {"Origin": origin, "Access-Control-Request-Method": method}
    return client.options(path, headers=request_headers | {"Access-Control-Request-Headers": headers})


def allows(client, origin, path="/token", method="POST"):
    """Whether pages of the origin may send the request, and read the answer."""
    answers = (
        preflight(client, path, method, origin=origin),
        client.open(path, method=method, json={}, headers={"Origin": origin}),
    )
    allowed = {answer.headers.get(ALLOW_ORIGIN) for answer in answers}
    assert len(allowed) == 1, allowed
    assert all("Access-Control-Allow-Credentials" not in answer.headers for answer in answers)
    return allowed.pop() in (origin, "*")


@pytest.fixture
def listing(make_app):
    """A client of a service that lists two origins."""
    return make_app(AUTH_CORS_ORIGINS=f"{APP},capacitor://localhost").test_client()


def test_listed_origin_may_read_responses_and_errors_without_credentials(listing):
    headers = {"Origin": APP}
    for status, response in {
        400: listing.post("/magiclink", json={}, headers=headers),
        401: listing.get("/user", headers=headers),
        404: listing.get("/nothing", headers=headers),
        405: listing.put("/token", headers=headers),
        415: listing.post("/token", data="x", headers=headers),
    }.items():
        assert response.status_code == status
        assert response.headers[ALLOW_ORIGIN] == APP
        assert "Origin" in response.headers["Vary"]
        assert names(response.headers["Access-Control-Expose-Headers"]) == EXPOSED
        assert "Access-Control-Allow-Credentials" not in response.headers


@cases(
    ("path", "method"),
    [
        *(("/user", method) for method in ("GET", "PUT", "DELETE")),
        *(("/token", "POST"), ("/auth/v1/signup", "POST"), ("/sessions/x", "DELETE")),
        # Otherwise the browser hides the 404.
        *(("/nothing", "GET"), ("/auth/v1/nothing", "PATCH"), ("/user/", "PUT")),
    ],
)
def test_preflight_allows_the_methods_of_any_path(listing, path, method):
    response = preflight(listing, path, method, ", ".join(sorted(ALLOWED)))
    assert response.status_code == 200
    assert response.headers[ALLOW_ORIGIN] == APP
    assert method.lower() in names(response.headers["Access-Control-Allow-Methods"])
    assert names(response.headers["Access-Control-Allow-Headers"]) == ALLOWED
    assert int(response.headers["Access-Control-Max-Age"]) > 0
    assert "Access-Control-Allow-Credentials" not in response.headers


TRACING = "baggage,sentry-trace,traceparent,tracestate,x-datadog-trace-id, x-my_app.version"


def test_preflight_of_a_named_origin_allows_the_headers_that_clients_add(listing, make_app):
    by_default = make_app(AUTH_SITE_URL=f"{APP}/start").test_client()
    for client in (listing, by_default, make_app(AUTH_CORS_ORIGINS="*").test_client()):
        response = preflight(client, "/token", "POST", f"authorization,{TRACING}")
        assert (response.status_code, response.headers[ALLOW_ORIGIN]) == (200, APP)
        assert response.headers["Access-Control-Allow-Headers"] == f"authorization,{TRACING}"
        assert "Access-Control-Allow-Credentials" not in response.headers


@cases(
    "header_names",
    ["", "*", "x y", "a,,b", "a,", "x: y", "a;b", "a\u00fc", '"a"', "x-" + "a" * 1024, "a\x0bb"],
)
def test_preflight_repeats_nothing_but_names_of_headers(listing, header_names):
    response = preflight(listing, headers=header_names)
    assert names(response.headers["Access-Control-Allow-Headers"]) == ALLOWED
    public = preflight(listing, "/health", "GET", header_names, EVIL)
    assert public.headers["Access-Control-Allow-Headers"] == ""


# Methods and paths whose answers are of several kinds, with wrong methods.
AUTHORIZATION = [
    *((method, path) for path in ("/authorize", "/oauth/authorize") for method in ("GET", "POST", "PUT")),
    *((method, path) for path in ("/callback", "/oauth/continue") for method in ("GET", "PUT")),
    *(("GET", "/providers/google/callback"), ("GET", "/authorize?provider=google&skip_http_redirect=true")),
]


@pytest.mark.parametrize("prefix", ["", "/auth/v1"])
@pytest.mark.parametrize("origins", ["*", APP])
def test_no_origin_may_read_the_authorization_endpoints(make_app, prefix, origins):
    client = make_app(AUTH_CORS_ORIGINS=origins).test_client()
    assert allows(client, APP, f"{prefix}/token")
    for method, path in AUTHORIZATION:
        answer = client.open(prefix + path, method=method, headers={"Origin": APP})
        for each in (answer, preflight(client, prefix + path, method)):
            assert [name for name, _ in each.headers if name.startswith("Access-Control-")] == []


def test_public_routes_are_for_any_origin(app):
    public = {f"/.well-known/{name}" for name in ("openid-configuration", "oauth-authorization-server")}
    public |= {f"{path}/<path:issuer_path>" for path in public} | {"/.well-known/jwks.json", "/openapi.yaml"}
    public |= {f"/oauth/{name}" for name in ("token", "userinfo", "revoke", "clients/register")}
    public |= {"/brand.css", "/brand/icon", "/brand/logo", "/brand/logo/<name>", "/health", "/settings"}
    views = {rule.rule: app.view_functions[rule.endpoint] for rule in app.url_map.iter_rules()}
    assert {rule for rule, view in views.items() if route_of(view).any_origin} == public


@pytest.mark.parametrize("origin", [APP, EVIL, "null"])
def test_any_origin_may_read_what_is_public(listing, origin):
    path, unusual = "/.well-known/openid-configuration", "mcp-protocol-version"
    answers = [
        listing.get(path, headers={"Origin": origin}),
        preflight(listing, path, "GET", unusual, origin),
    ]
    tag = {"Origin": origin, "If-None-Match": answers[0].headers["ETag"]}
    answers += [listing.get(path, headers=tag), listing.get(f"{path}/no", headers=tag)]
    assert [answer.status_code for answer in answers] == [200, 200, 304, 404]
    for each in answers:
        assert each.headers[ALLOW_ORIGIN] == "*"
        assert "Access-Control-Allow-Credentials" not in each.headers
    assert names(answers[1].headers["Access-Control-Allow-Headers"]) == {unusual}


class TestNamedOrigins:
    @pytest.mark.parametrize(
        "origin",
        [
            *(EVIL, f"{APP}.evil.example", f"{EVIL}/{APP}", "null", "capacitor://evil", "https://localhost"),
            *("http://app.example.com", "https://appxexample.com", f"{APP}:8443", MACHINE, f"{APP}/", "x"),
        ],
    )
    def test_origin_that_is_not_listed_may_not_read_responses(self, listing, origin):
        assert not allows(listing, origin)
        assert [allows(listing, each) for each in (APP, "capacitor://localhost")] == [True, True]

    def test_default_names_the_origins_of_the_other_settings(self, make_app):
        client = make_app(
            AUTH_BASE_URL="https://auth.example.com",
            AUTH_SITE_URL=f"{APP}/start",
            AUTH_REDIRECT_ALLOW_LIST="https://*.preview.example.com/back,capacitor://localhost/**,http://lan:8080/x",
            AUTH_OAUTH_CONSENT_URL="https://consent.example.com/ask",
            AUTH_WEBAUTHN_RP_ID="example.com",
            AUTH_WEBAUTHN_ORIGINS="https://passkeys.example.com,android:apk-key-hash:" + "x" * 43,
        ).test_client()
        origins = [APP, "https://a.preview.example.com", "capacitor://localhost", "http://lan:8080"]
        origins += ["https://auth.example.com", "https://consent.example.com", "https://passkeys.example.com"]
        others = [EVIL, MACHINE, "https://preview.example.com", "http://lan", "capacitor://other", "null"]
        others += ["https://a.b.preview.example.com", "http://app.example.com"]
        allowed = {origin for origin in (*origins, *others) if allows(client, origin)}
        assert allowed == set(origins)

    @pytest.mark.parametrize(
        "origin", [MACHINE, "http://127.0.0.1:5173", "http://[::1]:8080", "https://app.localhost"]
    )
    def test_default_on_this_machine_names_all_its_origins(self, client, origin):
        assert allows(client, origin)
        assert not allows(client, f"{origin.partition(':8080')[0]}.evil.example")

    @pytest.mark.parametrize("path", ["/admin/users", "/introspect"])
    def test_only_listed_origins_may_read_administrative_routes(self, client, make_app, listing, path):
        method = "POST" if path == "/introspect" else "GET"
        assert allows(listing, APP, path, method)
        assert not allows(client, MACHINE, path, method)
        anybody = make_app(AUTH_CORS_ORIGINS="*").test_client()
        assert allows(anybody, EVIL)
        assert not allows(anybody, EVIL, path, method)
