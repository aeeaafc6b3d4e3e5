"""openapi.yaml agrees with the routes, their guards, limits and headers."""

from typing import Any

from tests.source.test_contract import NAMES, OPERATIONS, SCHEMES, STATIC, guard_of, is_limited, views
from tests.support.contract import line_of, routes

LIMIT_HEADERS = {"X-RateLimit-Limit", "X-RateLimit-Remaining", "X-RateLimit-Reset"}


def test_operations_are_the_routes_named_by_their_views(whole_app):
    """Other routes of the same view add words to its name."""
    view_names = views(whole_app)
    served = {(method, path) for method, path, _ in routes(whole_app)}
    served.add(("get", f"{whole_app.static_url_path}/{{filename}}"))
    assert [f"openapi.yaml has no {method} {path}" for method, path in sorted(served - set(NAMES))] == []
    assert [
        f"openapi.yaml:{line_of(path)}: no view serves {method} {path}"
        for method, path in sorted(set(NAMES) - served)
    ] == []
    assert [name for name, view in view_names.items() if view.__name__ not in name] == []
    assert {view.__name__ for view in view_names.values()} <= set(view_names)


def test_security_of_operations_agrees_with_the_guards(whole_app):
    expected: dict[str, set[str]] = {name: SCHEMES[guard_of(view)] for name, view in views(whole_app).items()}
    assert {name: operation.schemes() for name, operation in OPERATIONS.items()} == expected | {STATIC: set()}


def test_exactly_the_limited_operations_have_a_429(whole_app):
    limited = {name for name, view in views(whole_app).items() if is_limited(view)}

    assert {name for name, operation in OPERATIONS.items() if 429 in operation.responses()} == limited


def test_responses_have_the_headers_of_their_kind(whole_app):
    limited = {name for name, view in views(whole_app).items() if is_limited(view)}
    differences = []
    for name, operation in OPERATIONS.items():
        for status, response in operation.responses().items():
            headers = set(response["headers"]) - {"Link", "X-Total-Count", "Set-Cookie"}
            # Headers that the proxy takes over.
            headers -= {each for each in headers if each.startswith("Remote-")} | {"Cookie"}
            expected = expected_headers(status, response, name in limited)
            differences += [(name, status, headers ^ expected)] if headers != expected else []
    assert differences == []


def expected_headers(status: int, response: dict[str, Any], is_counted: bool) -> set[str]:
    expected = {"X-Request-Id"}
    expected |= {"WWW-Authenticate"} if status == 401 else set()
    expected |= {"Retry-After"} if status in (429, 503) else set()
    expected |= {"Location"} if status in (302, 303) else set()
    expected |= {"Content-Security-Policy"} if "text/html" in response.get("content", {}) else set()
    return expected | (LIMIT_HEADERS if (is_counted and status < 400) or status == 429 else set())
