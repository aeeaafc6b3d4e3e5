"""The Python calls of four requests, libraries included: work that a decorator or a library hides costs, too."""

import json
import sys
from collections.abc import Callable
from types import FrameType
from typing import Any

import pytest
from werkzeug.test import EnvironBuilder

from tests.support import budgets
from tests.support.users import PASSWORD

LOG_IN = "POST /token password"
REFRESH = "POST /token refresh_token"


@pytest.fixture
def send(make_app) -> Callable[..., tuple[int, dict[str, Any]]]:
    """Send a request to the service with its limits on, and return the Python calls and the body of the answer."""
    app = make_app(AUTH_RATE_LIMITS_ENABLED="true")

    def send(method: str, path: str, body: Any = None, token: str = "") -> tuple[int, dict[str, Any]]:
        headers = [("Authorization", f"Bearer {token}")] if token else []
        environ = EnvironBuilder(path, method=method, json=body, headers=headers).get_environ()
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


def test_request_runs_no_more_python_calls_than_its_budget(send, alice):
    credentials = {"email": alice.email, "password": PASSWORD}
    calls_of: dict[str, list[int]] = {LOG_IN: [], REFRESH: [], "GET /user": [], "PUT /user": []}

    def run(name: str, *request: Any) -> dict[str, Any]:
        calls, answer = send(*request)
        calls_of[name].append(calls)
        return answer

    # The first requests fill caches, or prepare their statements on another connection.
    for _ in range(6):
        session = run(LOG_IN, "POST", "/token?grant_type=password", credentials)
        body = {"refresh_token": session["refresh_token"]}
        token = run(REFRESH, "POST", "/token?grant_type=refresh_token", body)["access_token"]
        # A token is verified at its first use, and remembered.
        run("GET /user", "GET", "/user", None, token)
        run("PUT /user", "PUT", "/user", {"data": {"name": "Alice"}}, token)
        run("GET /user", "GET", "/user", None, token)
    measured = {name: {"Python calls": min(calls)} for name, calls in calls_of.items()}
    print(measured)
    budgets.check(measured)
