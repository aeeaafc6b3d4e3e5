"""A database that is lost, frozen or has dropped its connections: 503, and 200 as soon as it is back."""

import socket
import threading
import time
from collections.abc import Callable
from urllib.parse import quote

import psycopg2
import pytest

from sql.pool import DEADLINE
from tests.support.answers import assert_error, unhealthy
from tests.support.processes import Service, wait_until
from tests.support.server import ServerClient, at_once
from tests.support.ways import Way, postgres_target

pytestmark = pytest.mark.selection
# The seconds for a response that waits for nothing, or on top of the deadline.
SOON = 2
UNHEALTHY = unhealthy("The database does not respond")
MSG = "The service can't answer at the moment; try again shortly"


class Relay(Way):
    """A proxy to Postgres that can close its connections, or freeze them silently."""

    def __init__(self, url: str) -> None:
        self._open = threading.Event()
        self._open.set()
        self._server = postgres_target(url)
        super().__init__(self._server)

    def freeze(self) -> None:
        self._open.clear()

    def thaw(self) -> None:
        self._open.set()

    def close(self) -> None:
        self.lead_to(None)

    def reopen(self) -> None:
        self.lead_to(self._server)

    def lanes(
        self, near: socket.socket, far: socket.socket
    ) -> list[tuple[socket.socket, socket.socket, Callable]]:
        return [(near, far, self._all_while_open), (far, near, self._all_while_open)]

    def _all_while_open(self, source: socket.socket, sink: socket.socket) -> None:
        while data := source.recv(65_536):
            self._open.wait()
            sink.sendall(data)


@pytest.fixture(scope="module")
def relay(database_url):
    relay = Relay(database_url)
    yield relay
    relay.end()


@pytest.fixture(scope="module")
def far_server(relay, environment, database_url, state_dir):
    """The service with its database behind the relay."""
    connection = psycopg2.connect(database_url)
    url = f"postgresql://{quote(connection.info.user)}@127.0.0.1:{relay.port}/{quote(connection.info.dbname)}"
    connection.close()
    changes = {name: value for name, value in environment.items() if name != "AUTH_STATE_DIR"} | {
        "DATABASE_URL": url
    }
    with Service(state_dir, **changes) as service:
        client = ServerClient(service.port)
        yield client
        client.close()


@pytest.fixture
def broken(relay, far_server, database, app):
    """The service; its database is restored after the test."""
    yield far_server
    relay.thaw()
    relay.reopen()
    wait_until(
        lambda: all(answer.status_code == 200 for answer in at_once(8, lambda _: far_server.get("/health")))
    )


def assert_unhealthy(server):
    # A worker caches the state of the database for a second.
    response = wait_until(lambda: (answer := server.get("/health")).status_code == 503 and answer)
    assert (response.status_code, response.json) == (503, UNHEALTHY)
    assert response.headers["Retry-After"] == "2"
    assert response.headers["Cache-Control"] == "no-store"


def test_lost_database_is_503_at_once_and_works_again_at_once(broken, relay, alice):
    session = alice.sign_in().on(broken)
    assert session.get("/user").status_code == 200
    relay.close()
    began = time.monotonic()
    assert_error(session.get("/user"), 503, "service_unavailable", MSG)
    assert_error(session.refresh(), 503, "service_unavailable", MSG)
    assert time.monotonic() - began < SOON
    assert_unhealthy(broken)
    relay.reopen()
    assert {answer.status_code for answer in at_once(16, lambda _: session.get("/user"))} == {200}


def test_connections_that_died_while_idle_are_not_used(broken, relay, alice, database):
    session = alice.sign_in().on(broken)
    at_once(16, lambda _: session.get("/user"))
    ours = "application_name = 'latchkey' AND datname = current_database()"
    database.all(f"SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE {ours}")
    wait_until(lambda: database.count("pg_stat_activity", ours) == 0 and relay.is_idle())
    assert {answer.status_code for answer in at_once(16, lambda _: session.get("/user"))} == {200}


def test_frozen_database_is_503_within_seconds_and_works_again(broken, relay, alice):
    session = alice.sign_in().on(broken)
    assert session.get("/user").status_code == 200
    relay.freeze()
    began = time.monotonic()
    for answer in at_once(8, lambda _: session.get("/user")):
        assert_error(answer, 503, "service_unavailable", MSG)
    assert time.monotonic() - began < DEADLINE + SOON
    relay.thaw()
    wait_until(lambda: session.get("/user").status_code == 200)


def test_health_does_not_wait_for_a_frozen_database(broken, relay):
    at_once(8, lambda _: broken.get("/health"))
    relay.freeze()
    assert_unhealthy(broken)
    began = time.monotonic()
    assert {answer.status_code for answer in at_once(8, lambda _: broken.get("/health"))} == {503}
    # The first request gives the database a second.
    assert time.monotonic() - began < 1 + SOON


def test_requests_without_statements_are_answered_without_a_database(broken, relay):
    relay.close()
    for path in ("/settings", "/.well-known/jwks.json", "/openapi.yaml", "/"):
        assert broken.get(path).status_code == 200
