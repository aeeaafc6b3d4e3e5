"""A database that is frozen, stopped, locked or read-only: requests get 503 soon, and the service recovers by
itself.
"""

import signal
import socket
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, closing, contextmanager
from functools import partial
from pathlib import Path
from typing import Any
from urllib.parse import quote

import psycopg2
import pytest
from werkzeug.wrappers import Response

from auth.ops.processes.embedded_postgres import EmbeddedPostgresError
from sql import Database, queries
from sql.pool import DEADLINE, SIZE, Pool
from tests.support.answers import unhealthy
from tests.support.awake import awake
from tests.support.environment import SERVICE_ROLE_KEY
from tests.support.postgres import Postgres
from tests.support.processes import free_port, short_directory, wait_until
from tests.support.server import ServerClient, at_once
from tests.support.users import PASSWORD, Session, register, sign_in

# The seconds within which a request must get a response, and the slack for a noisy machine.
SOON = 3
SLACK = 2
MSG = "The service isn't available right now; try again shortly"
BODY = {"code": 503, "msg": MSG, "error_code": "service_unavailable"}
# Responses below /oauth also have the members of RFC 6749.
UNAVAILABLE = (BODY, BODY | {"error": "temporarily_unavailable", "error_description": MSG})
ADMIN = {"apikey": SERVICE_ROLE_KEY}


@pytest.fixture(scope="module")
def postgres() -> Iterator[Postgres]:
    if not Path("/proc/self/task").exists():
        pytest.skip("looks for the processes of Postgres in /proc")
    with short_directory() as directory:
        try:
            server = Postgres(directory / "var", fsync="off")
        except EmbeddedPostgresError as error:
            pytest.skip(str(error))
        yield server
        server.signal(signal.SIGCONT)
        server.stop()


@pytest.fixture(scope="module")
def server(serve, postgres) -> Iterator[ServerClient]:
    """gunicorn with two workers, on that Postgres."""
    # A sign-up answered with 503 may have been committed; the log watch would take its printed mail for a
    # leak.
    with serve(
        DATABASE_URL=postgres.url, AUTH_DELIVER="true", AUTH_SMTP_URL=f"smtp://127.0.0.1:{free_port()}"
    ) as (_, client):
        yield client


@pytest.fixture(scope="module")
def alice(server) -> Session:
    return register(server, ADMIN, "alice@example.com").sign_in()


@pytest.fixture(scope="module")
def carol(server) -> Session:
    return register(server, ADMIN, "carol@example.com", "admin").sign_in()


def timed(send: Callable[[], Response]) -> tuple[Response, float]:
    started_at = awake()
    return send(), awake() - started_at


def requests_of_each_kind(server: Any, alice: Session, carol: Session) -> list[Callable[[], Response]]:
    """Return a request of each kind that needs the database."""
    credentials = {"email": "dave@example.com", "password": PASSWORD}
    return [
        lambda: alice.get("/user"),
        lambda: alice.put("/user", json={"data": {"x": 1}}),
        lambda: alice.get("/sessions"),
        lambda: alice.refresh(),
        lambda: sign_in(server, "alice@example.com"),
        lambda: server.post("/login-admin", json=credentials),
        lambda: server.post("/signup", json=credentials),
        lambda: carol.get("/admin/users"),
        lambda: server.get("/admin/users", headers=ADMIN),
        lambda: server.post("/introspect", json={"token": alice.access_token}, headers=ADMIN),
    ]


def assert_unavailable(answers: list[tuple[Response, float]], seconds: float) -> None:
    for response, seconds_taken in answers:
        assert response.status_code == 503
        assert response.json in UNAVAILABLE
        assert int(response.headers["Retry-After"]) >= 1
        assert seconds_taken < seconds


def assert_unhealthy(server: ServerClient, seconds: float) -> None:
    # A worker caches the health of the database for a second.
    def answers_if_all_are_unhealthy() -> list[tuple[Response, float]]:
        answers = at_once(8, lambda _: timed(lambda: server.get("/health")))
        return answers if {response.status_code for response, _ in answers} == {503} else []

    for response, seconds_taken in wait_until(answers_if_all_are_unhealthy):
        assert response.json == unhealthy("The database isn't responding")
        assert (response.headers["Retry-After"], response.headers["Cache-Control"]) == ("2", "no-store")
        assert seconds_taken < seconds


def all_are(status: int, send: Callable[[], Response]) -> list[tuple[Response, float]]:
    """Return eight responses with their seconds, if all have this status."""
    answers = at_once(8, lambda _: timed(send))
    return answers if {response.status_code for response, _ in answers} == {status} else []


def assert_recovers(server: ServerClient, alice: Session, carol: Session) -> None:
    for send in (lambda: alice.get("/user"), lambda: server.get("/health")):
        wait_until(partial(all_are, 200, send), 20)
    assert carol.get("/admin/users").status_code == 200
    assert sign_in(server, "alice@example.com").status_code == 200


@pytest.fixture(autouse=True)
def _recovered_service(postgres, server, alice, carol) -> Iterator[None]:
    yield
    postgres.signal(signal.SIGCONT)
    assert_recovers(server, alice, carol)


@contextmanager
def between(start: Callable[[], None], finish: Callable[[], None]) -> Iterator[None]:
    start()
    try:
        yield
    finally:
        finish()


def frozen(postgres: Postgres) -> AbstractContextManager[None]:
    return between(postgres.freeze, postgres.thaw)


def stopped(postgres: Postgres) -> AbstractContextManager[None]:
    return between(postgres.stop, postgres.start)


@contextmanager
def locked(
    postgres: Postgres, statement: str = "LOCK TABLE users IN ACCESS EXCLUSIVE MODE"
) -> Iterator[None]:
    with closing(psycopg2.connect(postgres.url)) as holder, holder.cursor() as cursor:
        cursor.execute(statement)
        yield


@contextmanager
def exhausted(postgres: Postgres) -> Iterator[None]:
    with ExitStack() as stack:
        for connection in postgres.take_all():
            stack.enter_context(closing(connection))
        yield


@pytest.mark.parametrize(("fault", "soon"), [(frozen, SOON), (stopped, 0), (locked, SOON), (exhausted, SOON)])
def test_outage_is_503_until_it_ends(postgres, server, alice, carol, fault, soon):
    # Requests that queue for a connection must not restart their wait for the database.
    requests = [*requests_of_each_kind(server, alice, carol), *[lambda: alice.get("/user")] * 40]
    at_once(16, lambda _: alice.get("/user"))
    with fault(postgres):
        assert_unavailable(at_once(len(requests), lambda number: timed(requests[number])), soon + SLACK)
        # The old connections are gone by now, so these requests need new ones.
        paths = ["/user", "/user", "/.well-known/jwks.json", "/settings", "/openapi.yaml", "/"]
        answers = at_once(len(paths), lambda number: timed(lambda: alice.get(paths[number])))
        assert [response.status_code for response, _ in answers] == [503, 503, 200, 200, 200, 200]
        assert all(seconds_taken < soon + SLACK for _, seconds_taken in answers)
        assert all(seconds_taken < SLACK for _, seconds_taken in answers[3:])
        if fault is not locked:
            assert_unhealthy(server, soon + SLACK)
    assert_recovers(server, alice, carol)


def test_locked_row_affects_only_its_user(postgres, server, alice, carol):
    requests = [
        lambda: alice.put("/user", json={"data": {"x": 1}}),
        lambda: sign_in(server, "alice@example.com"),
        lambda: carol.put("/user", json={"data": {"x": 1}}),
        lambda: alice.get("/user"),
    ]
    with locked(postgres, "SELECT FROM users WHERE email = 'alice@example.com' FOR UPDATE"):
        answers = at_once(4, lambda number: timed(requests[number]))
    assert [response.status_code for response, _ in answers] == [503, 503, 200, 200]
    assert_unavailable(answers[:2], SOON + SLACK)
    assert all(seconds_taken < SLACK for _, seconds_taken in answers[2:])


def test_read_only_postgres_refuses_writes_and_serves_reads(postgres, server, alice, carol):
    write = partial(alice.put, "/user", json={"data": {"x": 1}})
    postgres.run("ALTER SYSTEM SET default_transaction_read_only = on", "SELECT pg_reload_conf()")
    try:
        # Each process of Postgres reads the setting when it can.
        assert_unavailable(wait_until(partial(all_are, 503, write)), SOON + SLACK)
        assert alice.get("/user").status_code == 200
    finally:
        postgres.run("ALTER SYSTEM RESET default_transaction_read_only", "SELECT pg_reload_conf()")
    wait_until(partial(all_are, 200, write))


def test_service_stays_within_its_number_of_connections(postgres, server, alice):
    at_once(60, lambda _: alice.get("/user"))
    ours = "SELECT count(*) FROM pg_stat_activity WHERE application_name = 'latchkey'"
    # The pools of two workers, four of the delivery process, and one that listens. The pools close no connection that
    # they can use, but a process of Postgres ends a moment after its connection.
    wait_until(lambda: postgres.run(ours)[0] <= 2 * SIZE + 4 + 1)


def test_second_host_of_a_url_serves_when_the_first_hangs(postgres):
    with (
        closing(psycopg2.connect(postgres.url)) as connection,
        socket.create_server(("127.0.0.1", 0)) as silent,
    ):
        hosts = f"127.0.0.1,{quote(connection.info.host, safe='')}&port={silent.getsockname()[1]},5432"
        url = f"postgresql://postgres@/postgres?host={hosts}&target_session_attrs=read-write"
        with closing(Database(url, size=2)) as database:
            started_at, awake_since = time.monotonic(), awake()
            assert queries.ping(database)
            assert awake() - awake_since < DEADLINE + SLACK
            assert time.monotonic() - started_at > 1
            # The serving host is known by now, so no request waits for the other one.
            awake_since = awake()
            assert queries.ping(database)
            assert awake() - awake_since < 1


def test_requests_that_wait_for_a_connection_keep_their_deadline(postgres):
    """They keep it even if Postgres hangs."""

    def ask() -> tuple[str, float]:
        started_at = awake()
        try:
            queries.ping(database)
        except psycopg2.OperationalError as error:
            return str(error), awake() - started_at
        return "", awake() - started_at

    def ask_again_and_again(number: int) -> list[tuple[str, float]]:
        time.sleep(number * 0.1)
        return [ask() for _ in range(3)]

    reasons = ("Postgres has not responded in time", "all connections to Postgres are in use")
    with closing(Database(postgres.url, size=2)) as database:
        at_once(2, lambda _: ask())
        postgres.signal(signal.SIGSTOP)
        answers = [
            answer for answers_of_client in at_once(12, ask_again_and_again) for answer in answers_of_client
        ]
        postgres.signal(signal.SIGCONT)
    assert [answer for answer in answers if not answer[0].endswith(reasons)] == []
    assert max(seconds_taken for _, seconds_taken in answers) < DEADLINE + SLACK / 2


def test_abandoned_statement_ends(postgres):
    statement = "SET statement_timeout = 0; SELECT pg_sleep(60)"
    slow = f"SELECT count(*) FROM pg_stat_activity WHERE query = '{statement}'"
    with closing(Pool(postgres.url, 1)) as pool:
        with (
            pytest.raises(psycopg2.OperationalError, match="not responded in time"),
            pool.connection() as connection,
            connection.cursor() as cursor,
        ):
            cursor.execute(statement)
        with pool.connection() as connection, connection.cursor() as cursor:
            cursor.execute("SELECT 1")
    wait_until(lambda: postgres.run(slow) == (0,))
