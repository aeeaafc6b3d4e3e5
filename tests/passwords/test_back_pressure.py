"""More than can be served is turned away at once, and who is asked to come back later is not listened to for a second."""

import json
import re
import socket
import time
from contextlib import ExitStack, closing, nullcontext, suppress
from http.client import HTTPConnection
from uuid import UUID

import pytest
from structlog.testing import capture_logs

from auth.context import EXTENSION
from auth.flows.password_attempts import REQUESTS_IN_TURN
from auth.gunicorn_worker import QUEUE
from auth.views.token import GRANTS
from auth.web.wire import PREFIX
from tests.support import wire
from tests.support.answers import assert_error
from tests.support.cast import PASSWORD
from tests.support.contract import routes
from tests.support.crowd import crowd
from tests.support.processes import Service, UnfinishedRequest, children_of, descriptors_of, wait_until
from tests.support.wire import HOST

POST = b"POST /login-admin HTTP/1.1\r\n" + HOST + b"Content-Type: application/json\r\n"
LOG_IN = '{"email": "nobody@example.com", "password": "Wrong-Horse-1"}'
# What the application says to who finds no place to hash.
IN_VAIN = "Too many sign-ins at once; try again shortly"
LIMIT = {"AUTH_RATE_LIMITS_ENABLED": "true", "AUTH_RATE_LIMIT_LOGIN": "1 per 5 minutes", "AUTH_WORKERS": "1"}


def status(connection: HTTPConnection, method: str, path: str, body: str | None = None) -> int:
    connection.request(method, path, body, {"Content-Type": "application/json"})
    response = connection.getresponse()
    response.read()
    return response.status


def connect(service: Service) -> closing[HTTPConnection]:
    return closing(HTTPConnection("127.0.0.1", service.port, timeout=10))


def be_refused(connection: HTTPConnection) -> None:
    while status(connection, "POST", "/token?grant_type=password", LOG_IN) != 429:
        pass


def seconds_until_answered(connection: HTTPConnection) -> float:
    began = time.monotonic()
    assert status(connection, "GET", "/settings") == 200
    return time.monotonic() - began


@pytest.fixture(scope="module")
def service(serve):
    with serve(**LIMIT) as (service, _):
        yield service


def test_it_is_heard_again_after_a_second(service):
    with connect(service) as connection:
        be_refused(connection)
        assert 0.9 < seconds_until_answered(connection) < 5
        assert seconds_until_answered(connection) < 0.9


def test_its_second_begins_when_it_is_refused(service):
    with connect(service) as connection:
        be_refused(connection)
        time.sleep(1.3)
        assert seconds_until_answered(connection) < 0.9


def test_others_are_served_meanwhile(service):
    with connect(service) as connection, connect(service) as other:
        be_refused(connection)
        assert seconds_until_answered(other) < 0.9


def test_a_proxy_is_heard_at_once(serve):
    # Its connection is that of many clients.
    with serve(**LIMIT, AUTH_TRUSTED_PROXIES="1") as (service, _), connect(service) as connection:
        be_refused(connection)
        assert seconds_until_answered(connection) < 0.9


def test_whoever_leaves_meanwhile_leaves_nothing_behind(service):
    (worker,) = children_of(service.process.pid)
    before = descriptors_of(worker)
    for _ in range(150):
        with connect(service) as connection:
            be_refused(connection)
    # Long before the last of them would be heard again.
    wait_until(lambda: descriptors_of(worker) <= before + 9, 2)


def test_who_leaves_meanwhile_is_not_served_afterwards(service, database):
    with connect(service) as stays:
        for name, connection in (("gone", connect(service)), ("dave", nullcontext(stays))):
            with connection as each:
                be_refused(each)
                body = json.dumps({"email": f"{name}@example.com", "password": PASSWORD})
                each.request("POST", "/signup", body, {"Content-Type": "application/json"})
        assert stays.getresponse().status == 201
    assert [row.email for row in database.all("SELECT email FROM users")] == ["dave@example.com"]


def test_in_a_crowd_too_who_comes_back_when_it_may_is_heard_at_once(service):
    with ExitStack() as stack:
        for _ in range(400):
            be_refused(stack.enter_context(connect(service)))
        with connect(service) as connection:
            be_refused(connection)
            time.sleep(2)  # the least that Retry-After says in a crowd
            assert seconds_until_answered(connection) < 0.9


def test_a_service_ends_while_one_rests(serve):
    with serve(**LIMIT) as (service, _):
        with connect(service) as connection:
            be_refused(connection)
        began = time.monotonic()
    assert time.monotonic() - began < 5


def test_who_sends_slowly_keeps_nobody_from_signing_up(service):
    with ExitStack() as stack, connect(service) as connection:
        for _ in range(7):
            stack.enter_context(UnfinishedRequest(service, "/login-admin"))
        began = time.monotonic()
        assert status(connection, "POST", "/signup", json.dumps({"email": "dave@example.com", "password": PASSWORD})) == 201
        assert time.monotonic() - began < 5


class TestMoreThanCanBeServed:
    """One worker of four threads."""

    @pytest.fixture
    def busy(self, small_service):
        # What another test has left in the queue comes first.
        wait_until(lambda: small_service.get("/settings")[0] == 200)
        with ExitStack() as stack:
            unfinished = [stack.enter_context(UnfinishedRequest(small_service, "/login-admin")) for _ in range(4)]
            waiting = [stack.enter_context(connect(small_service)) for _ in range(QUEUE)]
            for connection in waiting:
                connection.request("GET", "/settings")
            yield small_service, unfinished, waiting

    def test_what_comes_beyond_is_answered_at_once(self, busy):
        service, unfinished, waiting = busy
        with connect(service) as beyond:
            began = time.monotonic()
            beyond.request("GET", "/settings")
            response = beyond.getresponse()
            assert time.monotonic() - began < 0.9
            assert response.status == 503
            assert response.headers["Retry-After"] == "2"
            assert json.loads(response.read())["error_code"] == "service_unavailable"
            for request in unfinished:
                request.finish()
            assert [connection.getresponse().status for connection in waiting] == [200] * QUEUE
            assert status(beyond, "GET", "/settings") == 200

    @pytest.mark.parametrize("length", [b"100000", b"000100000", b"0000000000000000000100000"])
    def test_a_body_is_never_taken_for_a_request(self, busy, length):
        service, _, _ = busy
        body = (b"GET /settings HTTP/1.1\r\n" + HOST + b"\r\n").ljust(100_000, b" ")
        with wire.connect(service.port, POST + b"Content-Length: " + length + b"\r\n\r\n") as beyond:
            time.sleep(0.2)  # so that the head comes by itself
            with suppress(ConnectionError):
                beyond.sendall(body)
            assert {(reply.status, reply.headers["Connection"]) for reply in wire.read(beyond)} <= {(503, "close")}

    @pytest.mark.parametrize(
        "head",
        [
            b"HEAD /health HTTP/1.1\r\n" + HOST,
            b"\r\nHEAD /health HTTP/1.1\r\n" + HOST,
            b"GET /health HTTP/1.1\r\n" + HOST + b"Connection:close\r\n",
            b"GET /health HTTP/1.1\r\n" + HOST + b"Connection: keep-alive, Close\r\n",
            POST + b"Content-Length: 0\r\nContent-Length: 0\r\n",
            POST + b"Content-Length: +0\r\n",
            POST + b"Content-Length : 0\r\n",
        ],
    )
    def test_what_can_not_be_told_from_its_next_request_is_closed(self, busy, head):
        service, _, _ = busy
        with wire.connect(service.port, head + b"\r\n") as beyond:
            assert [(reply.status, reply.headers["Connection"]) for reply in wire.read(beyond)] == [(503, "close")]

    def test_a_connection_whose_next_request_can_not_be_told_apart_is_closed(self, busy):
        service, _, _ = busy
        with connect(service) as beyond:
            beyond.request("POST", "/login-admin", iter([b"{}"]), {"Content-Type": "application/json"}, encode_chunked=True)
            response = beyond.getresponse()
            assert (response.status, response.headers["Connection"]) == (503, "close")


@pytest.mark.parametrize(
    ("path", "body"),
    [
        ("/token?grant_type=password", {"email": "alice@example.com", "password": PASSWORD}),
        ("/login-admin", {"email": "alice@example.com", "password": PASSWORD}),
        ("/signup", {"email": "dave@example.com", "password": PASSWORD}),
    ],
)
def test_what_finds_no_place_to_hash_is_turned_away_before_anything_is_counted(path, body, make_app):
    app = make_app(AUTH_RATE_LIMITS_ENABLED="true", AUTH_THREADS="4")
    parts = app.extensions[EXTENSION]
    with crowd(parts.passwords):
        before = parts.db.statements_run
        response = app.test_client().post(path, json=body)
        assert_error(response, 503, "service_unavailable")
        assert response.headers["Retry-After"] == "2"
        assert parts.db.statements_run == before
    assert app.test_client().post(path, json=body).status_code != 503


def test_the_worker_knows_what_will_wait_for_a_place_to_hash(make_app):
    app = make_app(AUTH_THREADS="4")
    client = app.test_client()
    waiting = []
    with crowd(app.extensions[EXTENSION].passwords):
        for method, path, _ in routes(app):
            for query in [f"?grant_type={grant}" for grant in GRANTS] if path == "/token" else [""]:
                for prefix in ("", PREFIX):
                    target = prefix + re.sub(r"{\w+}", str(UUID(int=1)), path) + query
                    response = client.open(target, method=method.upper(), json={})
                    waits = response.status_code == 503 and response.json["msg"] == IN_VAIN
                    assert waits == bool(REQUESTS_IN_TURN.match(f"{method.upper()} {target} HTTP/1.1\r\n".encode())), target
                    waiting += [target] * waits
    assert waiting == [
        "/signup",
        "/auth/v1/signup",
        *(f"{prefix}/token?grant_type=password" for prefix in ("", PREFIX)),
        "/login-admin",
        "/auth/v1/login-admin",
    ]


class TestMoreThanCanBeHashed:
    """One worker of eight threads: six may hash, or wait for it."""

    @pytest.fixture
    def service(self, slow_service):
        return slow_service

    @pytest.fixture
    def taken(self, service):
        """Connections of those who have all places."""
        with ExitStack() as stack:
            connections = [stack.enter_context(connect(service)) for _ in range(6)]
            for connection in connections:
                connection.request("POST", "/token?grant_type=password", LOG_IN, {"Content-Type": "application/json"})
            yield connections
            assert [connection.getresponse().status for connection in connections] == [401] * 6

    @pytest.mark.parametrize("path", ["/token?grant_type=password", "/auth/v1/login-admin", "/signup?redirect_to=https://example.com"])
    def test_is_turned_away_before_a_thread_is_given_to_it(self, service, taken, path):
        with connect(service) as beyond:
            began = time.monotonic()
            beyond.request("POST", path, LOG_IN, {"Content-Type": "application/json", "Origin": "https://app.example.com"})
            response = beyond.getresponse()
            assert time.monotonic() - began < 0.9
            assert (response.status, response.headers["Retry-After"], response.headers["Access-Control-Allow-Origin"]) == (503, "2", "*")
            assert "Retry-After" in response.headers["Access-Control-Expose-Headers"]
            # The worker's words: the application has others.
            assert json.loads(response.read()) == {"code": 503, "msg": "Too many requests at once; try again shortly", "error_code": "service_unavailable"}

    def test_is_counted_in_the_log_to_the_last_one(self, service, taken):
        logged = len(service.log())

        def counted() -> int:
            return sum(map(int, re.findall(r'"times": (\d+), "event": "turned_away_to_hash"', service.log()[logged:])))

        for _ in range(3):
            with connect(service) as beyond:
                assert status(beyond, "POST", "/login-admin", LOG_IN) == 503
        wait_until(lambda: counted() >= 3)

    def test_keeps_nobody_from_anything_else(self, service, taken):
        began = time.monotonic()
        assert service.get("/settings")[0] == 200
        assert time.monotonic() - began < 0.9

    def test_finds_a_place_when_others_have_gone(self, service):
        with connect(service) as connection:
            wait_until(lambda: status(connection, "POST", "/token?grant_type=password", LOG_IN) == 401)

    @pytest.mark.parametrize(
        ("announced", "sent"), [(b"Expect: 100-continue\r\nContent-Length: 60", 50), (b"Transfer-Encoding: chunked", 50), (b"Content-Length: 70000", 66_000)]
    )
    def test_is_not_because_of_those_who_send_slowly(self, service, announced, sent):
        with ExitStack() as stack, connect(service) as connection:
            for _ in range(7):
                stack.enter_context(wire.connect(service.port, POST + announced + b"\r\n\r\n" + b" " * sent))
            time.sleep(0.3)  # so that threads have taken on what needs one
            assert status(connection, "POST", "/login-admin", LOG_IN) == 401


@pytest.fixture(scope="module")
def roomy(serve):
    """gunicorn with one worker, in which a hash takes a seventh of a second or more: six may be at work, and others wait for them."""
    with serve(AUTH_WORKERS="1", AUTH_THREADS="64", AUTH_BCRYPT_COST="12") as (service, _):
        yield service


class TestWhoHasGone:
    def test_is_not_waited_for(self, roomy, database):
        sign_ups = [json.dumps({"email": f"gone{number}@example.com", "password": PASSWORD}).encode() for number in range(9)]
        heads = [b"POST /signup HTTP/1.1\r\n" + HOST + b"Content-Type: application/json\r\nContent-Length: %d\r\n\r\n" % len(body) for body in sign_ups]
        logged = len(roomy.log())
        with ExitStack() as stack:
            for head, body in zip(heads, sign_ups, strict=True):
                stack.enter_context(wire.connect(roomy.port, head + body))
        with closing(HTTPConnection("127.0.0.1", roomy.port, timeout=20)) as connection:
            assert status(connection, "POST", "/token?grant_type=password", LOG_IN) == 401
        # Six were at work already; nothing was done for the others.
        assert roomy.log()[logged:].count('"status": 503') == 3
        assert database.value("SELECT count(*) FROM users WHERE email LIKE 'gone_@%%'") == 6
        assert '"event": "clients_gone"' in roomy.log()[logged:]

    def test_but_who_only_says_that_it_sends_no_more_is_answered(self, roomy):
        with wire.connect(roomy.port, POST + b"Connection: close\r\nContent-Length: %d\r\n\r\n" % len(LOG_IN) + LOG_IN.encode()) as connection:
            connection.shutdown(socket.SHUT_WR)
            assert [reply.status for reply in wire.read(connection)] == [401]


def test_that_nobody_finds_a_place_is_a_line_a_second_however_many_they_are(make_app):
    app = make_app(AUTH_THREADS="4")
    with crowd(app.extensions[EXTENSION].passwords), capture_logs() as logs:
        began = time.monotonic()
        for _ in range(40):
            assert app.test_client().post("/token?grant_type=password", json={"email": "alice@example.com", "password": PASSWORD}).status_code == 503
        seconds = time.monotonic() - began
    lines = [line for line in logs if line["event"] == "hashing_queue_full"]
    assert len(lines) <= 1 + seconds
    assert sum(line["times"] for line in lines) <= 40
