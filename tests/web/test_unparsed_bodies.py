"""Bodies are parsed after guard and limit, within the bounds of their route."""

import io
import json
import re
import sys
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import pytest
from werkzeug.formparser import FormDataParser

from auth.core import json_bodies
from auth.core.settings import names
from auth.core.tokens import one_time
from auth.html import forms
from auth.web.application import FORM
from auth.web.context import EXTENSION
from auth.web.declarations import route_of
from tests.source.test_contract import OPERATIONS, views
from tests.support.answers import DIALECT
from tests.support.apps import new_app
from tests.support.cases import cases
from tests.support.contract import OPENAPI
from tests.support.pages import Visitor

WITH_BODY = {"POST", "PUT", "PATCH", "DELETE"}
AN_ID = "00000000-0000-0000-0000-000000000000"
# Prefix and headers: without the dialect, and with it by header, by prefix and by both.
DIALECTS = [("", {}), ("", DIALECT), ("/auth/v1", {}), ("/auth/v1", DIALECT)]
BODY = {"email": "dave@example.com", "phone": "4915112345678", "password": "Correct-Horse-1"}
GRANT_QUERIES = ["", "?grant_type=password", "?grant_type=pkce", "?grant_type=id_token", "?grant_type=web3"]
# Here applications send credentials and grant in a form, without which nothing is counted.
CREDENTIALS_IN_FORM = {"/introspect", "/oauth/token", "/oauth/userinfo"}
KIB_BY_ENDPOINT = {
    **dict.fromkeys(("token.token", "introspect.introspect", "openid.revoke"), 32),
    **dict.fromkeys(("signup.signup", "user.update_user", "admin.create_user", "admin.update_any_user"), 64),
    **dict.fromkeys(("admin.generate_link", "admin.invite", "console.user_actions.submit_metadata"), 64),
    **{f"console.bulk.submit_{action}": 64 for action in ("end_sessions", "ban", "delete", "invite_list")},
}
TOO_LARGE = {16: "TooLarge", 32: "TooLargeForTokens", 64: "TooLargeForMetadata"}


class Parsers:
    """Counts calls of the parsers of bodies."""

    def __enter__(self) -> "Parsers":
        self.calls = 0
        self._patch = pytest.MonkeyPatch()
        for owner, name in ((json_bodies, "decode"), (FormDataParser, "_parse_urlencoded")):
            self._patch.setattr(owner, name, self._counted(getattr(owner, name)))
        return self

    def __exit__(self, *_: object) -> None:
        self._patch.undo()

    def _counted(self, parser: Callable[..., Any]) -> Callable[..., Any]:
        def count(*arguments: Any, **options: Any) -> Any:
            self.calls += 1
            return parser(*arguments, **options)

        return count


@pytest.fixture(scope="module")
def default_app(environment):
    """An application in which each limit is one request an hour."""
    limits = {name: "1 per hour" for name in names() if name.startswith("AUTH_RATE_LIMIT_")}
    changes = {"AUTH_RATE_LIMITS_ENABLED": "true", "AUTH_ANONYMOUS_ENABLED": "true", "AUTH_API_KEYS": "true"}
    del limits["AUTH_RATE_LIMIT_STORAGE"]
    app = new_app(environment | limits | changes)
    yield app
    app.extensions[EXTENSION].db.close()


def routes(app: Any) -> Iterator[tuple[str, str, str]]:
    """Yield method, path and endpoint of each route that may have a body."""
    for rule in app.url_map.iter_rules():
        # This route opens a page and counts nothing, or strangers could block the sign-out of a network.
        if rule.rule == "/oauth/logout":
            continue
        path = re.sub("<[^>]+>", AN_ID, rule.rule)
        for method in sorted((rule.methods or set()) & WITH_BODY):
            for query in GRANT_QUERIES if path == "/token" else [""]:
                yield method, path + query, rule.endpoint


def beyond_limits(ask: Any, **options: Any) -> tuple[int, int]:
    """Return the status of a request whose limits are spent, and the number of bodies that were parsed."""
    for _ in range(4):
        with Parsers() as parsers:
            status = ask(**options).status_code
        if not parsers.calls:
            break
    return status, parsers.calls


@cases(("prefix", "headers"), DIALECTS)
def test_no_body_is_parsed_before_guard_and_limit(app, alice, prefix, headers):
    callers: tuple[dict[str, str], ...] = ({}, alice.open_session().authorization)
    kinds = ({"json": BODY}, {"data": BODY})
    client, statuses, parsing = app.test_client(), set(), []
    # This spends the limit of deletions, so that Alice is not deleted below.
    assert client.delete("/user", json={"nonce": 1}, headers=callers[1]).status_code in (400, 429)
    for method, path, _endpoint in routes(app):
        for caller in callers:
            for kind in kinds:
                if path == "/oauth/token" or (path in CREDENTIALS_IN_FORM and "data" in kind):
                    continue
                options = {"method": method, "headers": headers | caller, **kind}
                status, calls = beyond_limits(partial(client.open, prefix + path), **options)
                statuses.add(status)
                parsing += [(method, path, status)] if calls else []
    assert parsing == []
    assert {401, 403, 415, 429} <= statuses


def test_no_form_with_its_token_is_parsed_before_the_limit(app, alice):
    session = Visitor(app).with_session_of(alice).session_cookie
    assert session
    browsers = {"latchkey": session.value, "latchkey_form": one_time.new_token()}
    client, statuses, parsing = app.test_client(use_cookies=False), [], []
    for method, path, endpoint in routes(app):
        accepts_forms = route_of(app.view_functions[endpoint]).accepts_forms
        if not accepts_forms or path.startswith("/console") or path in CREDENTIALS_IN_FORM:
            continue
        for cookie, secret in browsers.items():
            options = {"data": BODY | {"form_token": forms.token_of(secret)}, "method": method}
            options["headers"] = {"Cookie": f"{cookie}={secret}"}
            status, calls = beyond_limits(partial(client.open, path), **options)
            statuses.append(status)
            parsing += [(path, status)] if calls else []
    assert parsing == []
    assert statuses.count(429) > 20


class Unreadable(io.BytesIO):
    def read(self, *_: Any) -> bytes:
        raise AssertionError("the body was read")

    readinto = readline = read  # type: ignore[assignment]


def test_longer_body_than_its_route_takes_is_refused_without_reading(app):
    client, bounds = app.test_client(), {}
    for method, path, endpoint in routes(app):
        if "?" in path and "id_token" not in path:
            continue  # other grants take 16 KiB
        route = route_of(app.view_functions[endpoint])
        kib = KIB_BY_ENDPOINT.get(endpoint, 16)
        bounds[endpoint] = route.max_body
        for kind in ["application/json"] + [FORM] * route.accepts_forms:
            options = {"content_type": kind, "method": method}
            answer = client.open(path, input_stream=Unreadable(b" " * (kib * 1024 + 1)), **options)
            assert (answer.status_code, f"larger than {kib} KiB" in answer.text) == (413, True), path
            answer = client.open(path, data=b" " * kib * 1024, **options)
            assert answer.status_code != 413, path
    assert bounds == {name: KIB_BY_ENDPOINT.get(name, 16) * 1024 for name in bounds}
    assert KIB_BY_ENDPOINT.keys() <= bounds.keys()


def test_contract_names_the_bound_of_each_operation(whole_app):
    bounds = {name: route_of(view).max_body for name, view in views(whole_app).items()}
    names = {
        name
        for name, operation in OPERATIONS.items()
        if "413" in operation.description["responses"]
        and TOO_LARGE[bounds[name] // 1024]
        != operation.description["responses"]["413"]["$ref"].rpartition("/")[2]
    }
    assert names == set()
    for kib, name in TOO_LARGE.items():
        assert f"{name}:\n      description: The body is larger than {kib} KiB" in OPENAPI.read_text()


MOST_BYTES = 64 * 1024


@cases(
    "body",
    [
        (b'{"a":' * MOST_BYTES)[:MOST_BYTES],
        b"[" * MOST_BYTES,
        b'{"a":' * 33 + b"1" + b"}" * 33,
        json.dumps({f"a{number}": 1 for number in range(60_000)}).encode(),
        json.dumps({"a": [{}] * 9_000}).encode(),
        b'{"a": "\\\\\\"", "b": ' + b"[" * 40,
    ],
)
def test_deep_or_wide_json_is_refused_before_objects_are_made_of_it(body):
    steps: list[Any] = []

    def decode() -> None:
        sys.setprofile(lambda frame, _event, _argument: steps.append(frame.f_code))
        try:
            json_bodies.decode(body)
        finally:
            sys.setprofile(None)

    with pytest.raises(json_bodies.InvalidJson, match=r"brackets and commas|nested deeper"):
        decode()
    assert (json.JSONDecoder.raw_decode.__code__ in steps, len(steps) < 50) == (False, True)
