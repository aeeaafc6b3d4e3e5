"""The Python calls of some requests, libraries included: work that a decorator or a library hides costs, too."""

import json
import sys
from collections import defaultdict
from collections.abc import Callable
from types import FrameType
from typing import Any

import pytest
from werkzeug.test import EnvironBuilder

from tests.support import budgets
from tests.support.api_keys import make_key
from tests.support.environment import SERVICE_ROLE_KEY
from tests.support.openid import make_client, tokens_of
from tests.support.users import PASSWORD

LOG_IN = "POST /token password"
REFRESH = "POST /token refresh_token"


@pytest.fixture
def app(make_app):
    """The service with its limits and its extensions on."""
    return make_app(AUTH_RATE_LIMITS_ENABLED="true", AUTH_API_KEYS="true")


@pytest.fixture
def send(app) -> Callable[..., tuple[int, dict[str, Any]]]:
    """Send a request, and return the Python calls and the body of the answer."""

    def send(
        method: str, path: str, body: Any = None, token: str = "", **options: Any
    ) -> tuple[int, dict[str, Any]]:
        headers = [("Authorization", f"Bearer {token}")] if token else [*options.pop("headers", {}).items()]
        environ = EnvironBuilder(path, method=method, json=body, headers=headers, **options).get_environ()
        calls, statuses = 0, []

        def note(_frame: FrameType, event: str, _arg: object) -> None:
            nonlocal calls
            calls += event == "call"

        def start(status: str, *_rest: object) -> Callable[[bytes], object]:
            statuses.append(status)
            return lambda _data: None

        sys.setprofile(note)
        try:
            data = b"".join(app(environ, start))
        finally:
            sys.setprofile(None)
        assert statuses == ["200 OK"], data
        return calls, json.loads(data)

    return send


class Calls:
    """The Python calls of requests by their names."""

    def __init__(self, send: Callable[..., tuple[int, dict[str, Any]]]) -> None:
        self._send = send
        self._calls_of: dict[str, list[int]] = defaultdict(list)

    def run(self, name: str, *request: Any, **options: Any) -> dict[str, Any]:
        """Send a request, and return the body of the answer."""
        calls, answer = self._send(*request, **options)
        self._calls_of[name].append(calls)
        return answer

    def check(self) -> None:
        """Fail if a request exceeds its budget. The first ones fill caches, or prepare their statements on another
        connection.
        """
        measured = {name: {"Python calls": min(calls)} for name, calls in self._calls_of.items()}
        print(measured)
        budgets.check(measured)


def test_request_runs_no_more_python_calls_than_its_budget(send, alice):
    credentials, calls = {"email": alice.email, "password": PASSWORD}, Calls(send)
    for _ in range(6):
        session = calls.run(LOG_IN, "POST", "/token?grant_type=password", credentials)
        body = {"refresh_token": session["refresh_token"]}
        token = calls.run(REFRESH, "POST", "/token?grant_type=refresh_token", body)["access_token"]
        calls.run("GET /user, new token", "GET", "/user", None, token)
        calls.run("PUT /user", "PUT", "/user", {"data": {"name": "Alice"}}, token)
        calls.run("GET /user", "GET", "/user", None, token)
    calls.check()


def test_token_of_an_api_key_takes_no_more_python_calls_than_its_budget(app, send, alice):
    _, key = make_key(alice.open_session(app.test_client()))
    calls = Calls(send)
    for _ in range(3):
        token = send("POST", "/token?grant_type=api_key", {"api_key": key})[1]["access_token"]
        calls.run("GET /user, API key, new token", "GET", "/user", None, token)
        for _ in range(2):
            calls.run("GET /user, API key", "GET", "/user", None, token)
    calls.check()


def test_introspection_runs_no_more_python_calls_than_its_budget(app, send, alice, database):
    http, calls = app.test_client(), Calls(send)
    api, application = make_client(database, introspects_sessions=True), make_client(database)
    for _ in range(3):
        of_session = alice.open_session(http).access_token
        of_application = tokens_of(http, database, application, alice)["access_token"]
        for place in range(3):
            name = "POST /introspect, new token" if place == 0 else "POST /introspect"
            body = {"token": of_session}
            assert calls.run(name, "POST", "/introspect", body, SERVICE_ROLE_KEY)["active"]
            for asking, token in ((api, of_session), (application, of_application)):
                kind = "session" if asking is api else "application"
                form = {"data": {"token": token}, "headers": asking.basic}
                assert calls.run(
                    f"POST /introspect, {kind}, by an application", "POST", "/introspect", **form
                )["active"]
    calls.check()
