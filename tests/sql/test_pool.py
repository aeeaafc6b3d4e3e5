"""The pool of connections to Postgres, and the timeouts of its connections."""

import re
import uuid
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, closing
from functools import partial
from operator import attrgetter
from urllib.parse import quote

import psycopg2
import pytest
from psycopg2.extensions import string_types
from psycopg2.extras import register_uuid

from sql import load_statements
from sql.pool import Pool, connect
from tests.support.processes import free_port, wait_until
from tests.support.timeouts import SERVICE_TIMEOUTS


def test_connection_has_timeouts(database_url, monkeypatch):
    monkeypatch.setattr("sql.pool._TIMEOUTS", SERVICE_TIMEOUTS)
    with closing(connect(database_url)) as connection, connection.cursor() as cursor:
        for name, value in {
            "statement_timeout": "5s",
            "lock_timeout": "2s",
            "idle_in_transaction_session_timeout": "10s",
        }.items():
            cursor.execute(f"SHOW {name}")
            assert cursor.fetchone() == (value,)


def test_connection_goes_to_the_next_host_when_the_first_refuses(database_url):
    with closing(psycopg2.connect(database_url)) as direct:
        known = attrgetter("user", "password", "host", "port", "dbname")(direct.info)
        user, password, host, port, name = (quote(str(value or ""), safe="") for value in known)
    url = f"postgresql://{user}:{password}@/{name}?host=127.0.0.1,{host}&port={free_port()},{port}"
    with closing(connect(url)) as connection:
        assert str(connection.info.port) == port


def test_refused_connection_is_an_error_that_names_host_and_port_but_no_password():
    port = free_port()
    with pytest.raises(psycopg2.OperationalError) as raised:
        connect(f"postgresql://auth:topsecret@127.0.0.1:{port}/auth")
    where = f'connection to server at "127.0.0.1", port {port} failed: Connection refused'
    assert str(raised.value).startswith(where)
    assert "topsecret" not in str(raised.value)


def test_postgres_that_is_too_old_is_refused_with_its_version(database_url, monkeypatch):
    monkeypatch.setattr("sql.pool.LEAST_VERSION", 99)
    with pytest.raises(psycopg2.OperationalError) as raised:
        connect(database_url)
    assert re.fullmatch("it is Postgres 1[4-9], but must be Postgres 99 or later", str(raised.value))


@pytest.fixture
def other_library():
    """Registers a type for all connections of the process, as Django's backend does when it is imported."""
    before = dict(string_types)
    register_uuid()
    yield
    string_types.clear()
    string_types.update(before)


@pytest.mark.usefixtures("other_library")
def test_connection_returns_uuids_as_text_when_another_library_registers_them(database_url):
    with closing(psycopg2.connect(database_url)) as others, others.cursor() as cursor:
        cursor.execute("SELECT gen_random_uuid()")
        assert [type(value) for (value,) in cursor] == [uuid.UUID]
    with closing(connect(database_url)) as connection, connection.cursor() as cursor:
        cursor.execute("SELECT gen_random_uuid()")
        assert [type(value) for (value,) in cursor] == [str]


def test_connection_has_its_own_casters_for_the_types_that_statements_return(database_url):
    with closing(connect(database_url)) as connection, connection.cursor() as cursor:
        if connection.server_version < 16_00_00:
            pytest.skip("NOT TESTED: only Postgres 16 and later list the types that statements return")
        for statement in load_statements().values():
            cursor.execute(statement.prepare())
        cursor.execute(
            "SELECT DISTINCT coalesce(nullif(t.typbasetype, 0), t.oid)"
            "  FROM pg_prepared_statements AS p, unnest(p.result_types) AS returned"
            "  JOIN pg_type AS t ON t.oid = returned"
            " WHERE t.typname <> 'void'"
        )
        returned = {oid for (oid,) in cursor.fetchall()}
        assert returned - connection.string_types.keys() == set()
        assert len(returned) > 5


@pytest.fixture
def pool(database_url):
    with closing(Pool(database_url, size=5)) as pool:
        yield pool


def test_last_returned_connection_is_lent_next(pool):
    with pool.connection() as first:
        pass
    with pool.connection() as again:
        assert again is first


def test_every_connection_is_lent_before_a_request_waits_in_vain(pool, monkeypatch):
    with ExitStack() as held:
        lent = [held.enter_context(pool.connection()) for _ in range(5)]
        monkeypatch.setattr("sql.pool.CHECKOUT_DEADLINE", 0.2)
        assert len({connection.get_backend_pid() for connection in lent}) == pool.lent == 5
        with pytest.raises(psycopg2.OperationalError, match="all connections to Postgres are in use"):
            held.enter_context(pool.connection())
    assert (pool.lent, pool.timeouts) == (0, 1)


def test_requests_get_connections_in_the_order_in_which_they_began_to_wait(pool):
    served = []

    def serve(number):
        with pool.connection():
            served.append(number)

    def waits(count):
        return len(pool._waiting) == count

    with ExitStack() as held, ThreadPoolExecutor(8) as threads:
        for _ in range(4):
            held.enter_context(pool.connection())
        with pool.connection():
            for number in range(8):
                threads.submit(serve, number)
                wait_until(partial(waits, number + 1))
        threads.shutdown()
        assert served == list(range(8))
    assert pool.lent == 0


def test_pool_that_is_closed_while_connections_are_lent_stays_as_large(pool):
    def use(_: int) -> None:
        for _ in range(30):
            with pool.connection():
                pass

    with ThreadPoolExecutor(pool.size) as threads:
        uses = threads.map(use, range(pool.size))
        for _ in range(300):
            pool.close()
        list(uses)
    assert pool.lent == 0
    with ExitStack() as held:
        for _ in range(pool.size):
            held.enter_context(pool.connection())


def test_connection_handed_to_a_request_that_has_ended_goes_to_the_next(pool, monkeypatch):
    monkeypatch.setattr("sql.pool.CHECKOUT_DEADLINE", 0.05)
    with ExitStack() as held:
        for _ in range(5):
            held.enter_context(pool.connection())
        with pytest.raises(psycopg2.OperationalError), pool.connection():
            pass
    assert pool.lent == 0
    with pool.connection():
        assert pool.lent == 1
