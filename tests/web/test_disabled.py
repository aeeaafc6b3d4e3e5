"""Routes of extensions that are off: each operation of openapi.yaml answers 404."""

import re
from typing import Any

from tests.support.answers import assert_error
from tests.support.contract import routes

SERVER_PATHS = re.compile(r"(/admin|/user)?/oauth/")


def operations(app: Any) -> list[tuple[str, str]]:
    """Return method and path of each operation of the OAuth server, from an application that has it."""
    operations_of_server = [(method, path) for method, path, _ in routes(app) if SERVER_PATHS.match(path)]
    assert len(operations_of_server) > 18
    return operations_of_server


def example(path: str) -> str:
    return re.sub(r"{.+?}", "11111111-1111-4111-8111-111111111111", path)


def test_routes_of_the_oauth_server_do_not_exist_while_it_is_off(make_app, app, database):
    client = make_app(AUTH_OAUTH_SERVER="false", AUTH_RATE_LIMITS_ENABLED="true").test_client()
    before = database.everything()
    for method, path in operations(app):
        body: dict[str, Any] = {} if method == "get" else {"json": {}}
        response = client.open(example(path), method=method, **body)
        assert_error(response, 404, "feature_disabled", "OAuth server is disabled")
        assert "X-RateLimit-Limit" not in response.headers
    assert database.everything() == before


def test_pages_of_the_oauth_server_do_not_exist_while_it_is_off_except_that_for_signing_out(make_app):
    client = make_app(AUTH_OAUTH_SERVER="false").test_client()
    html = {"Accept": "text/html"}
    for path in ("/oauth/consent", "/oauth/logout", "/oauth/authorize", "/oauth/continue"):
        response = client.get(path, headers=html)
        assert (response.status_code, response.mimetype) == (404, "text/html"), path
    assert client.get("/sign-out", headers=html).status_code == 200


def test_routes_of_api_keys_and_customers_providers_do_not_exist_while_they_are_off(make_app, alice):
    session = alice.open_session(make_app(AUTH_RATE_LIMITS_ENABLED="true").test_client())
    for method, path in (("get", ""), ("post", ""), ("delete", "/11111111-1111-4111-8111-111111111111")):
        assert_error(session.open(f"/user/api_keys{path}", method=method), 404, "api_keys_disabled")
    assert_error(session.post("/sso", json={}), 404, "saml_provider_disabled", "SAML 2.0 is disabled")
    assert_error(session.get("/admin/custom-providers"), 404, "feature_disabled")
