"""GET /health while the database answers; tests/faults/test_lost_database.py has the rest."""

import struct
import time
from collections.abc import Callable, Iterator

import pytest

from auth import __version__
from auth.core.settings import served
from auth.web import health
from tests.support.answers import A_TIMESTAMP, assert_ok
from tests.support.tables import Rows
from tests.support.users import PASSWORD

HEALTHY = {"status": "healthy", "service": "latchkey", "version": __version__, "timestamp": A_TIMESTAMP}


def test_health_is_200_while_the_database_responds(client):
    assert_ok(client.get("/health"), HEALTHY)
    assert_ok(client.get("/health", headers={"Authorization": "Bearer nonsense", "apikey": "x"}), HEALTHY)
    head = client.head("/health")
    assert (head.status_code, head.data) == (200, b"")


def test_health_costs_at_most_one_statement_a_second(client, parts):
    before = parts.db.statements_run
    began = time.monotonic()
    for _ in range(50):
        assert client.get("/health").status_code == 200
    assert parts.db.statements_run - before <= 1 + (time.monotonic() - began)


@pytest.fixture
def failing_writes(database: Rows) -> Iterator[Callable[[str], None]]:
    """Let each new user fail with a condition of Postgres."""

    def fail(condition: str) -> None:
        body = f"BEGIN RAISE USING MESSAGE = 'a test', ERRCODE = '{condition}'; END"
        database.run(f"CREATE OR REPLACE FUNCTION fail() RETURNS trigger LANGUAGE plpgsql AS $${body}$$")
        database.run("CREATE TRIGGER failing BEFORE INSERT ON users FOR EACH ROW EXECUTE FUNCTION fail()")

    yield fail
    database.run("DROP FUNCTION fail CASCADE")
    health.seen[:] = bytes(len(health.seen))


@pytest.mark.parametrize(
    ("condition", "msg"),
    [
        ("disk_full", "The disk of the database is full; nothing can be written"),
        ("read_only_sql_transaction", "The database is read-only; nothing can be written"),
    ],
)
def test_health_is_degraded_for_a_minute_after_writes_failed(client, failing_writes, condition, msg):
    failing_writes(condition)
    assert client.post("/signup", json={"email": "a@example.com", "password": PASSWORD}).status_code == 503
    assert_ok(client.get("/health"), HEALTHY | {"status": "degraded", "msg": msg})
    strict = client.get("/health?strict")
    assert (strict.status_code, strict.json["status"], strict.json["msg"]) == (503, "unhealthy", msg)
    age_of_troubles(61)
    assert_ok(client.get("/health?strict"), HEALTHY)


def test_health_does_not_change_after_a_failure_that_other_requests_do_not_share(client, failing_writes):
    failing_writes("lock_not_available")
    assert client.post("/signup", json={"email": "a@example.com", "password": PASSWORD}).status_code == 503
    assert_ok(client.get("/health?strict"), HEALTHY)


def age_of_troubles(seconds: float) -> None:
    times = [at - seconds for (at,) in struct.iter_unpack("d", health.seen)]
    health.seen[:] = struct.pack(f"{len(times)}d", *times)


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
