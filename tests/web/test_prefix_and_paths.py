"""Paths: the prefix /auth/v1, and other spellings of paths."""

from tests.support.answers import assert_error
from tests.support.cases import cases
from tests.support.raw_http import ask

UNKNOWN = "Path not found"
OPEN = "/health /settings /openapi.yaml /.well-known/jwks.json /"
IN_DIALECT = ("/health", "/settings")
OTHER_PREFIXES = "/auth/v1/auth/v1/health /auth/health /auth/v2/health /auth/v1health /AUTH/V1/health /auth /auth/v1/nothing"
UNKNOWN_PATHS = (
    "/nothing /health/ /Health /token/ /user/me /admin /admin/users/x/y /static/ /static/../app.py"
    " /static/%2e%2e/app.py /.env /%00"
)
SPELLINGS = (
    "/health/ /./health /x/../health /health%2f /health;x /health%00 /health%20 /HEALTH /auth/v1/../v1/health"
)
LONG = "/settings?" + "x" * 8000


class TestPrefix:
    @cases("path", [*OPEN.split(), "/.well-known/oauth-authorization-server"])
    def test_public_routes_are_served_under_the_prefix(self, client, path):
        plain, prefixed = client.get(path), client.get(f"/auth/v1{path}")
        assert prefixed.status_code == 200
        assert path in IN_DIALECT or prefixed.data == plain.data
        assert client.get("/auth/v1").status_code == 200

    @cases("path", OTHER_PREFIXES.split())
    def test_other_prefixes_are_404(self, client, path):
        assert_error(client.get(path), 404, "not_found", UNKNOWN)


class TestUnknownPaths:
    @cases("path", UNKNOWN_PATHS.split())
    def test_unknown_path_is_404(self, client, path):
        for method in ("GET", "POST"):
            response = client.open(path, method=method)
            status = 405 if response.status_code == 405 else 404
            assert_error(response, status, "method_not_allowed" if status == 405 else "not_found")

    def test_unknown_path_is_not_repeated_and_its_body_may_have_any_type(self, client):
        assert "script" not in client.get("/<script>").text
        assert_error(client.post("/nothing", json={}), 404, "not_found", UNKNOWN)
        response = client.post("/nothing", data="x", content_type="text/plain")
        assert_error(response, 404, "not_found", UNKNOWN)


class TestMethods:
    @cases("header", ["X-HTTP-Method-Override", "X-Method-Override"])
    def test_header_does_not_override_the_method(self, alice, header):
        session = alice.open_session()
        for _ in range(2):
            headers = session.authorization | {header: "DELETE"}
            assert session.client.get("/user", headers=headers).status_code == 200

    @cases(("path", "status"), [*((path, 200) for path in OPEN.split()), ("/nothing", 404), ("/user", 401)])
    def test_head_is_get_without_a_body(self, client, path, status):
        got, headed = client.get(path), client.head(path)
        assert (headed.status_code, headed.data) == (status, b"")
        assert headed.headers["Content-Type"] == got.headers["Content-Type"]


class TestPathsOnTheServer:
    """Over a real socket, as the test client normalizes paths."""

    @cases("path", SPELLINGS.split())
    def test_other_spellings_are_404(self, server, path):
        reply = ask(server.port, path)
        assert (reply.status, reply.headers["Content-Type"]) == (404, "application/json")
        assert reply.json["error_code"] == "not_found"

    @cases("target", ["http://evil.example/health", "http://localhost/user", "*", LONG])
    def test_absolute_or_long_target_is_not_a_500(self, server, target):
        assert ask(server.port, target).status in (200, 400, 401, 404, 414)
