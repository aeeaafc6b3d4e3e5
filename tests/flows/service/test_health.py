"""GET /health while the database answers; tests/system/faults/test_database_outages.py has the rest."""

import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager
from typing import Any

import psycopg2
import pytest

from auth import __version__
from auth.core import health
from auth.core.settings import served
from tests.support.answers import A_TIMESTAMP, assert_ok
from tests.support.checked_rows import statements_run
from tests.support.processes import wait_until
from tests.support.tables import Rows
from tests.support.users import PASSWORD, sign_in

HEALTHY = {"status": "healthy", "service": "latchkey", "version": __version__, "timestamp": A_TIMESTAMP}


def test_health_is_200_while_the_database_responds(client):
    assert_ok(client.get("/health"), HEALTHY)
    assert_ok(client.get("/health", headers={"Authorization": "Bearer nonsense", "apikey": "x"}), HEALTHY)
    head = client.head("/health")
    assert (head.status_code, head.data) == (200, b"")


THREAD = "health_0"


def test_health_costs_at_most_one_statement_a_second(client, monkeypatch):
    monkeypatch.setattr(health, "_INTERVAL", 1.0)
    assert client.get("/health").status_code == 200
    before = statements_run(THREAD)
    assert before
    start = time.monotonic()
    for _ in range(50):
        assert client.get("/health").status_code == 200
    assert statements_run(THREAD) - before <= 1 + (time.monotonic() - start)


FULL = "The disk of the database is full; nothing can be written"
READ_ONLY = "The database is read-only; nothing can be written"
LOCKED = "Statements on users or sessions wait for a lock; latchkey doctor names the session that holds it"
FAILING = "CREATE OR REPLACE FUNCTION {} LANGUAGE plpgsql AS $$BEGIN RAISE USING ERRCODE = '{}'; END$$"


def assert_degraded(client: Any, msg: str) -> None:
    assert_ok(client.get("/health"), HEALTHY | {"status": "degraded", "msg": msg})
    strict = client.get("/health?strict")
    assert (strict.status_code, strict.json["status"], strict.json["msg"]) == (503, "unhealthy", msg)


@pytest.fixture
def failing_writes(database: Rows) -> Iterator[Callable[[str], None]]:
    """Let each new user fail with a condition of Postgres."""

    def fail(condition: str) -> None:
        database.run(FAILING.format("fail() RETURNS trigger", condition))
        database.run("CREATE TRIGGER failing BEFORE INSERT ON users FOR EACH ROW EXECUTE FUNCTION fail()")

    yield fail
    database.run("DROP FUNCTION fail CASCADE")


@contextmanager
def full_disk(database: Rows) -> Iterator[None]:
    definition = database.value("SELECT pg_get_functiondef('write_to_disk'::regproc)")
    database.run(FAILING.format("write_to_disk() RETURNS bigint", "disk_full"))
    try:
        yield
    finally:
        database.run(definition)


def sign_up(client: Any) -> int:
    return client.post("/signup", json={"email": "a@example.com", "password": PASSWORD}).status_code


def test_health_is_degraded_from_a_write_to_a_full_disk_until_there_is_room(client, failing_writes, database):
    with full_disk(database):
        assert_ok(client.get("/health?strict"), HEALTHY)
        failing_writes("disk_full")
        assert sign_up(client) == 503
        assert_degraded(client, FULL)
    assert_ok(client.get("/health?strict"), HEALTHY)
    with full_disk(database):
        assert_ok(client.get("/health?strict"), HEALTHY)


def test_health_is_degraded_while_the_database_is_read_only_whatever_was_before(
    client, failing_writes, database, parts
):
    name = database.value("SELECT current_database()")
    with full_disk(database):
        failing_writes("disk_full")
        assert sign_up(client) == 503
        database.run(f'ALTER DATABASE "{name}" SET default_transaction_read_only = on')
        try:
            parts.health.db.close()
            assert_degraded(client, READ_ONLY)
        finally:
            database.run("SET default_transaction_read_only = off")
            database.run(f'ALTER DATABASE "{name}" RESET default_transaction_read_only')
            parts.health.db.close()
    assert_ok(client.get("/health?strict"), HEALTHY)


@pytest.mark.parametrize(
    "statement", ["LOCK TABLE users", "LOCK TABLE sessions IN SHARE MODE", "UPDATE users SET role = role"]
)
def test_health_is_degraded_while_statements_wait_for_a_lock(client, alice, database_url, statement):
    with closing(psycopg2.connect(database_url)) as holder, ThreadPoolExecutor(1) as thread:
        holder.cursor().execute(statement)
        assert_ok(client.get("/health?strict"), HEALTHY)
        future = thread.submit(sign_in, client, alice.email)
        wait_until(lambda: client.get("/health?strict").status_code == 503)
        assert_degraded(client, LOCKED)
        holder.rollback()
        assert future.result().status_code == 200
    assert_ok(client.get("/health?strict"), HEALTHY)


def test_health_is_degraded_while_waiting_requests_have_all_connections(
    app, client, parts, alice, database_url
):
    session = alice.open_session()
    with closing(psycopg2.connect(database_url)) as holder, ThreadPoolExecutor(50) as threads:
        holder.cursor().execute("LOCK TABLE users")
        futures = [
            threads.submit(lambda: session.on(app.test_client()).get("/user").status_code) for _ in range(50)
        ]
        wait_until(lambda: parts.db.pool.lent == parts.db.pool.size)
        # Until a statement has waited for a second, nothing is wrong.
        wait_until(lambda: assert_responds(client)["status"] == "degraded")
        assert_degraded(client, LOCKED)
        holder.rollback()
        assert {each.result() for each in futures} <= {200, 503}


def assert_responds(client: Any) -> Any:
    response = client.get("/health")
    assert response.status_code == 200, response.text
    return response.json


@pytest.fixture
def failing_delivery() -> Iterator[None]:
    served.delivery_fails[0] = True
    yield
    served.delivery_fails[0] = False


@pytest.mark.usefixtures("failing_delivery")
def test_health_is_degraded_while_the_delivery_process_ends_again_and_again(client):
    msg = "The delivery process ends again and again, and sends nothing; see the log of the service"
    assert_ok(client.get("/health"), HEALTHY | {"status": "degraded", "msg": msg})
    strict = client.get("/health?strict")
    assert (strict.status_code, strict.json["status"], strict.json["msg"]) == (503, "unhealthy", msg)
