"""Back-pressure: a full hashing queue refuses log-ins early, and all other requests are served, even during a hundred
log-ins at once with hashes of the highest cost.
"""

import re
import time
from collections.abc import Iterator
from contextlib import ExitStack, closing
from http.client import HTTPConnection
from uuid import UUID

import pytest

from auth.api.sign_in import GRANTS
from auth.web.context import EXTENSION
from auth.web.edge import PREFIX
from tests.core.passwords.test_simultaneous_log_ins import dearest, set_hash
from tests.support import raw_http
from tests.support.answers import assert_error
from tests.support.checked_rows import statements_run
from tests.support.contract import routes
from tests.support.full_queue import full_queue
from tests.support.processes import Service
from tests.support.raw_http import HOST
from tests.support.server import ServerClient, at_once, until_served
from tests.support.users import PASSWORD, sign_in

POST = b"POST /login-admin HTTP/1.1\r\n" + HOST + b"Content-Type: application/json\r\n"
LOG_IN = '{"email": "nobody@example.com", "password": "Wrong-Horse-1"}'
QUEUE_IS_FULL = "Too many sign-ins at once; try again shortly"


@pytest.fixture(scope="module")
def slow_service(serve) -> Iterator[Service]:
    """gunicorn with one worker, in which a hash takes at least a tenth of a second."""
    with serve(AUTH_WORKERS="1", AUTH_BCRYPT_COST="11") as (service, _):
        yield service


def connect(service: Service) -> closing[HTTPConnection]:
    return closing(HTTPConnection("127.0.0.1", service.port, timeout=30))


def send(connection: HTTPConnection, method: str, path: str, body: str | None = None) -> None:
    connection.request(method, path, body, {"Content-Type": "application/json"})


def status(connection: HTTPConnection, method: str, path: str, body: str | None = None) -> int:
    send(connection, method, path, body)
    response = connection.getresponse()
    response.read()
    return response.status


@pytest.mark.parametrize(
    ("path", "body"),
    [
        ("/token?grant_type=password", {"email": "alice@example.com", "password": PASSWORD}),
        ("/login-admin", {"email": "alice@example.com", "password": PASSWORD}),
        ("/signup", {"email": "dave@example.com", "password": PASSWORD}),
    ],
)
def test_full_queue_refuses_before_anything_is_counted(path, body, make_app):
    app = make_app(AUTH_RATE_LIMITS_ENABLED="true")
    parts = app.extensions[EXTENSION]
    with full_queue(parts.passwords):
        before = statements_run()
        response = app.test_client().post(path, json=body)
        assert_error(response, 503, "service_unavailable", QUEUE_IS_FULL)
        assert response.headers["Retry-After"] == "2"
        assert statements_run() == before
    assert app.test_client().post(path, json=body).status_code != 503


def test_full_queue_refuses_only_sign_ins_and_sign_ups(make_app):
    app = make_app()
    client = app.test_client()
    refusing = []
    with full_queue(app.extensions[EXTENSION].passwords):
        for method, path, _ in routes(app):
            for query in [f"?grant_type={grant}" for grant in GRANTS] if path == "/token" else [""]:
                target = re.sub(r"{\w+}", str(UUID(int=1)), path) + query
                response = client.open(PREFIX + target, method=method.upper(), json={})
                if response.status_code == 503 and response.json["msg"] == QUEUE_IS_FULL:
                    refusing.append(target)
    assert refusing == ["/signup", "/token?grant_type=password", "/login-admin"]


class TestTheService:
    def test_sign_ins_beyond_the_queue_are_refused_and_the_others_are_checked(self, slow_service):
        with ExitStack() as stack:
            connections = [stack.enter_context(connect(slow_service)) for _ in range(300)]
            for connection in connections:
                send(connection, "POST", "/token?grant_type=password", LOG_IN)
            assert slow_service.get("/settings")[0] == 200
            responses = [connection.getresponse() for connection in connections]
        assert {response.status for response in responses} == {401, 503}
        assert {response.headers["Retry-After"] for response in responses if response.status == 503} == {"2"}

    @pytest.mark.parametrize("announced", [b"Transfer-Encoding: chunked", b"Content-Length: 70000"])
    def test_slow_bodies_do_not_fill_the_queue(self, slow_service, announced):
        with ExitStack() as stack, connect(slow_service) as connection:
            for _ in range(300):
                stack.enter_context(
                    raw_http.connect(slow_service.port, POST + announced + b"\r\n\r\n" + b" ")
                )
            time.sleep(0.3)  # until they have arrived
            assert status(connection, "POST", "/login-admin", LOG_IN) == 401


@pytest.fixture(scope="module")
def dear_server(serve) -> Iterator[ServerClient]:
    with serve(AUTH_BCRYPT_COST="10") as (_, client):
        yield client
        assert client.get("/health?strict").status_code == 200


@pytest.mark.parametrize("stored", dearest(10).values(), ids=list(dearest(10)))
def test_hundred_log_ins_are_answered_and_other_users_sign_in(dear_server, database, alice, bob, stored):
    set_hash(database, alice, stored)

    def send_request(number):
        if number < 100:
            return sign_in(dear_server, alice.email, "Wrong-Horse-1").status_code
        if number == 100:
            return until_served(lambda: sign_in(dear_server, bob.email)).status_code
        return dear_server.get("/settings").status_code

    *attempts, signed_in, settings = at_once(102, send_request)
    assert 401 in attempts
    assert set(attempts) <= {401, 503}
    assert (signed_in, settings) == (200, 200)
