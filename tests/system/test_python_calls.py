"""The Python calls of some requests, libraries included: work that a decorator or a library hides costs, too."""

import json

import pytest

from tests.support.api_keys import make_key
from tests.support.openid import bearer, make_client, tokens_of
from tests.support.python_calls import Counter
from tests.support.users import PASSWORD


@pytest.fixture
def app(make_app):
    """The service with its limits and its extensions on."""
    return make_app(AUTH_RATE_LIMITS_ENABLED="true", AUTH_API_KEYS="true")


@pytest.fixture
def counter(app):
    return Counter(app)


def test_request_runs_no_more_python_calls_than_its_budget(counter, alice):
    credentials = {"email": alice.email, "password": PASSWORD}

    def take(name, grant_type, body):
        return json.loads(counter.send(name, query_string={"grant_type": grant_type}, json=body))

    for _ in range(6):
        session = take("POST /token password", "password", credentials)
        refresh_token = {"refresh_token": session["refresh_token"]}
        headers = bearer(take("POST /token refresh_token", "refresh_token", refresh_token)["access_token"])
        counter.send("GET /user with a new token", headers=headers)
        counter.send("PUT /user", json={"data": {"name": "Alice"}}, headers=headers)
        counter.send("GET /user", headers=headers)
    counter.check()


def test_token_of_an_api_key_takes_no_more_python_calls_than_its_budget(app, counter, alice):
    _, key = make_key(alice.open_session(app.test_client()))
    http = app.test_client()
    for _ in range(3):
        token = http.post("/token?grant_type=api_key", json={"api_key": key}).json["access_token"]
        counter.send("GET /user with a new token of an API key", headers=bearer(token))
        for _ in range(2):
            counter.send("GET /user with a token of an API key", headers=bearer(token))
    counter.check()


def test_introspection_runs_no_more_python_calls_than_its_budget(app, counter, alice, database, service_role):
    http, application = app.test_client(), make_client(database, introspects_sessions=True)

    def ask(name, **options):
        assert json.loads(counter.send(name, **options))["active"]

    for _ in range(3):
        of_session = alice.open_session(http).access_token
        of_application = tokens_of(http, database, application, alice)["access_token"]
        for name in ["POST /introspect of a new token"] + ["POST /introspect"] * 2:
            ask(name, json={"token": of_session}, headers=service_role)
        for what, token in (("a session", of_session), ("an application", of_application)):
            for _ in range(2):
                name = f"POST /introspect by an application, of {what}"
                ask(name, data={"token": token}, headers=application.basic)
    counter.check()
