"""Routes of extensions that are off: each operation of openapi.yaml answers 404, and the edge treats it as ever."""

import re
from typing import Any

from auth.web.declarations import Route, route_of
from tests.support.answers import A_SENTENCE, assert_error
from tests.support.contract import routes

OF_PROVIDER = re.compile(r"(/admin|/user)?/oauth/")
FOREIGN = {"Origin": "https://evil.example", "Sec-Fetch-Site": "cross-site"}
SCRIPT = FOREIGN | {"Sec-Fetch-Mode": "cors", "Sec-Fetch-Dest": "empty"}
# What the edge, errors and the headers of CORS read, by method.
ATTRIBUTES = ("any_origin", "refuses_by_page", "max_body", "is_administrative")
OF_METHOD = {"get": ("answers_frames",), "post": ("takes_foreign_forms", "accepts_forms")}


def operations(app: Any) -> list[tuple[str, str, Route]]:
    """Return method, path and route of each operation of the provider in openapi.yaml, from an application
    with the extension."""
    named = [(method, path, route_of(view)) for method, path, view in routes(app)]
    found = [each for each in named if OF_PROVIDER.match(each[1])]
    assert len(found) > 18
    return found


def example(path: str) -> str:
    return re.sub(r"{.+?}", "11111111-1111-4111-8111-111111111111", path)


def test_routes_of_the_provider_do_not_exist_while_it_is_off(make_app, app, database):
    client = make_app(AUTH_OAUTH_SERVER="false", AUTH_RATE_LIMITS_ENABLED="true").test_client()
    before = database.everything()
    for method, path, _ in operations(app):
        body: dict[str, Any] = {} if method == "get" else {"json": {}}
        response = client.open(example(path), method=method, **body)
        assert_error(response, 404, "feature_disabled", "OAuth server is disabled")
        assert "X-RateLimit-Limit" not in response.headers
    assert database.everything() == before


def test_edge_treats_the_routes_of_the_provider_alike_while_it_is_on_and_off(make_app, app):
    off = make_app(AUTH_OAUTH_SERVER="false")
    adapter = off.url_map.bind("localhost")
    for method, path, route in operations(app):
        endpoint, _ = adapter.match(example(path), method.upper())
        disabled = route_of(off.view_functions[endpoint])
        for name in (*ATTRIBUTES, *OF_METHOD.get(method, ())):
            assert getattr(disabled, name) == getattr(route, name), (method, path, name)
        assert bool(disabled.guard) == bool(route.guard), (method, path)
        response = off.test_client().open(example(path), method=method, headers=SCRIPT)
        if route.any_origin and (route.guard or method == "get"):
            assert_error(response, 404, "feature_disabled")
        elif not route.any_origin:
            assert_error(response, 403, "origin_not_allowed", details=A_SENTENCE)
        readers = response.headers.get("Access-Control-Allow-Origin")
        assert readers == ("*" if route.any_origin else None)


def test_pages_of_the_provider_do_not_exist_while_it_is_off_but_that_for_signing_out_does(make_app):
    client = make_app(AUTH_OAUTH_SERVER="false").test_client()
    html = {"Accept": "text/html"}
    for path in ("/oauth/consent", "/oauth/logout", "/oauth/authorize", "/oauth/continue"):
        response = client.get(path, headers=html)
        assert (response.status_code, response.mimetype) == (404, "text/html"), path
    assert client.get("/sign-out", headers=html).status_code == 200


def test_routes_of_api_keys_ask_who_calls_while_they_are_off(make_app, alice):
    client = make_app(AUTH_RATE_LIMITS_ENABLED="true").test_client()
    session = alice.open_session(client)
    for method, path in (("get", ""), ("post", ""), ("delete", "/11111111-1111-4111-8111-111111111111")):
        url = f"/user/api_keys{path}"
        assert_error(client.open(url, method=method), 401, "no_authorization", details=A_SENTENCE)
        assert_error(session.open(url, method=method), 404, "api_keys_disabled")
