"""The pool of connections to Postgres, and the timeouts of its connections."""

import os
import re
import socket
import threading
import time
import uuid
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, closing, suppress
from functools import partial
from operator import attrgetter
from urllib.parse import quote

import psycopg2
import pytest
from psycopg2.extensions import make_dsn, parse_dsn

from auth.ops import connections
from sql import load_statements
from sql.pool import Pool, connect
from tests.support.processes import free_port, wait_until
from tests.support.timeouts import SERVICE_TIMEOUTS
from tests.support.tls_postgres import TlsPostgres


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


def test_connection_for_long_work_lifts_every_time_limit_of_the_role(new_database):
    url = new_database()
    with closing(psycopg2.connect(url)) as direct, direct.cursor() as cursor:
        limits = "^(statement|lock|transaction|idle).*_timeout$"
        cursor.execute("SELECT name FROM pg_settings WHERE context = 'user' AND name ~ %s", (limits,))
        names = [name for (name,) in cursor.fetchall()]
        for name in names:
            cursor.execute(f"ALTER DATABASE {direct.info.dbname} SET {name} = '7s'")
        direct.commit()
    for connection in (connect(url, has_timeouts=False), connections.connect(url)):
        with closing(connection), connection.cursor() as cursor:
            cursor.execute("SELECT name, setting FROM pg_settings WHERE name = ANY(%s)", (names,))
            assert dict(cursor.fetchall()) == dict.fromkeys(names, "0")


def test_idle_connection_is_probed_before_a_load_balancer_forgets_it_unless_the_url_says_otherwise(
    database_url,
):
    options = {"SO_KEEPALIVE": socket.SOL_SOCKET} | dict.fromkeys(
        ("TCP_KEEPIDLE", "TCP_KEEPINTVL", "TCP_KEEPCNT"), socket.IPPROTO_TCP
    )
    with TlsPostgres(database_url, None) as server:
        for changes, idle in (({}, 30), ({"keepalives_idle": "200"}, 200)):
            with (
                closing(connect(server.url("127.0.0.1", **changes))) as connection,
                socket.socket(fileno=os.dup(connection.fileno())) as end,
            ):
                values = [end.getsockopt(level, getattr(socket, name)) for name, level in options.items()]
            assert values == [1, idle, 10, 3]


def test_connection_goes_to_the_next_host_when_the_first_refuses(database_url):
    with closing(psycopg2.connect(database_url)) as direct:
        parts = attrgetter("user", "password", "host", "port", "dbname")(direct.info)
        user, password, host, port, name = (quote(str(value or ""), safe="") for value in parts)
    url = f"postgresql://{user}:{password}@/{name}?host=127.0.0.1,{host}&port={free_port()},{port}"
    with closing(connect(url)) as connection:
        assert str(connection.info.port) == port


def test_refused_connection_is_an_error_that_names_host_and_port_but_no_password():
    port = free_port()
    with pytest.raises(psycopg2.OperationalError) as raised:
        connect(f"postgresql://auth:topsecret@127.0.0.1:{port}/auth")
    message = f'connection to server at "127.0.0.1", port {port} failed: Connection refused'
    assert str(raised.value).startswith(message)
    assert "topsecret" not in str(raised.value)


def test_error_names_each_host_that_serves_nobody():
    ports = [free_port(), free_port()]
    with pytest.raises(psycopg2.OperationalError) as raised:
        connect("postgresql://auth@127.0.0.1:{},127.0.0.1:{}/auth".format(*ports))
    named_ports = re.findall(r"port (\d+) failed: Connection refused", str(raised.value))
    assert named_ports == [str(port) for port in ports]


def test_postgres_that_is_too_old_is_refused_with_its_version(database_url, monkeypatch):
    monkeypatch.setattr("sql.pool.LEAST_VERSION", 99)
    with pytest.raises(psycopg2.OperationalError) as raised:
        connect(database_url)
    assert re.fullmatch("it is Postgres 1[4-9], but must be Postgres 99 or later", str(raised.value))


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
        oids = {oid for (oid,) in cursor.fetchall()}
        assert oids - connection.string_types.keys() == set()
        assert len(oids) > 5


@pytest.fixture
def pool(database_url):
    with closing(Pool(database_url, size=5)) as pool:
        yield pool


def test_every_connection_is_lent_before_a_request_waits_in_vain(pool, monkeypatch):
    with ExitStack() as connections:
        lent = [connections.enter_context(pool.connection()) for _ in range(5)]
        monkeypatch.setattr("sql.pool.CHECKOUT_DEADLINE", 0.2)
        assert len({connection.get_backend_pid() for connection in lent}) == pool.lent == 5
        with pytest.raises(psycopg2.OperationalError, match="all connections to Postgres are in use"):
            connections.enter_context(pool.connection())
    assert (pool.lent, pool.timeouts) == (0, 1)


def test_requests_get_connections_in_the_order_in_which_they_began_to_wait(pool):
    served = []

    def serve(number):
        with pool.connection():
            served.append(number)

    def waits(count):
        return len(pool._waiting) == count

    with ExitStack() as connections, ThreadPoolExecutor(8) as threads:
        for _ in range(4):
            connections.enter_context(pool.connection())
        with pool.connection():
            for number in range(8):
                threads.submit(serve, number)
                wait_until(partial(waits, number + 1))
        threads.shutdown()
        assert served == list(range(8))
    assert pool.lent == 0


def test_connections_that_no_request_needs_are_closed_but_one(pool):
    with ExitStack() as connections:
        lent = [connections.enter_context(pool.connection()) for _ in range(4)]
    for _ in range(3):
        pool.close_unneeded()
    assert (pool._open, pool.lent, sum(connection.closed for connection in lent)) == (1, 0, 3)


def test_request_that_ends_while_its_connection_is_opened_leaves_room_for_the_next(pool, monkeypatch):
    """Like a greenlet whose client has disconnected."""

    class HungUp(BaseException):
        pass

    def hang_up(*_args: object, **_options: object) -> None:
        raise HungUp

    with ExitStack() as connections:
        for _ in range(4):
            connections.enter_context(pool.connection())
        with monkeypatch.context() as patch:
            patch.setattr("sql.pool.connect", hang_up)
            for _ in range(3):
                with pytest.raises(HungUp), pool.connection():
                    pass
        assert pool.lent == 4
        with pool.connection():
            assert pool.lent == 5


# Of four connections, the pool leaves one to others. Postgres counts connections that it is about to refuse: several at
# once refuse each other, and the pool gets smaller than needed.
SMALLER = (1, 2, 3)


class TestPostgresThatRefusesConnections:
    """A managed database may limit the connections of a role."""

    @pytest.fixture
    def limited(self, database_url) -> Iterator[str]:
        """The URL of a role with four connections."""
        name = f"limited_{uuid.uuid4().hex}"
        with closing(psycopg2.connect(database_url)) as direct, direct.cursor() as cursor:
            direct.autocommit = True
            cursor.execute(f"CREATE ROLE {name} LOGIN PASSWORD 'limited' CONNECTION LIMIT 4")
            yield make_dsn(database_url, user=name, password="limited")
            cursor.execute(
                "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE usename = %s", (name,)
            )
            cursor.execute(f"DROP ROLE {name}")

    def use(self, pool: Pool) -> int:
        with pool.connection() as connection, connection.cursor() as cursor:
            cursor.execute("SELECT 1 FROM pg_sleep(0.2)")
            return cursor.rowcount

    @pytest.mark.parametrize("replica", [False, True], ids=["alone", "with-a-replica"])
    def test_pool_gets_smaller_and_its_requests_wait(self, limited, replica, monkeypatch):
        monkeypatch.setattr("sql.pool._PAUSE", 60.0)
        if replica:
            # The primary's refusal comes before that of a replica, which is not writable.
            parameters = parse_dsn(limited)
            hosts, ports = f"{parameters['host']},127.0.0.1", f"{parameters.get('port', 5432)},{free_port()}"
            limited = make_dsn(limited, host=hosts, port=ports)
        with closing(Pool(limited, size=8)) as pool, ThreadPoolExecutor(24) as threads:
            assert list(threads.map(lambda _: self.use(pool), range(24))) == [1] * 24
            assert (pool.size in SMALLER, pool.lent, pool.timeouts) == (True, 0, 0)
            with closing(connect(limited)):  # the pool has left one to others
                pass

    def test_pool_grows_again_by_one_connection_a_time(self, limited, monkeypatch, all_rows):
        monkeypatch.setattr("sql.pool._PAUSE", 60.0)
        role = parse_dsn(limited)["user"]
        statement = "SELECT count(*) FROM pg_stat_activity WHERE usename = %(role)s"
        with closing(Pool(limited, size=8)) as pool, ThreadPoolExecutor(12) as threads:
            list(threads.map(lambda _: self.use(pool), range(12)))
            # A connection that the pool has closed counts until its process has ended.
            wait_until(lambda: all_rows.value(statement, role=role) <= pool.size)
            smaller = pool.size
            assert smaller in SMALLER
            monkeypatch.setattr(pool, "_grows_at", 0.0)
            list(threads.map(lambda _: self.use(pool), range(12)))
            assert (pool.size, pool._open) == (smaller + 1, smaller + 1)


def test_pool_is_as_large_as_before_after_all_its_connections_were_ended(pool, database_url):
    def use(_: int) -> None:
        with suppress(psycopg2.Error), pool.connection() as connection, connection.cursor() as cursor:
            cursor.execute("SELECT pg_sleep(0.01)")

    is_over = threading.Event()

    def use_until_the_end(_: int) -> None:
        while not is_over.is_set():
            use(0)

    with ThreadPoolExecutor(12) as threads, closing(psycopg2.connect(database_url)) as direct:
        for number in range(12):
            threads.submit(use_until_the_end, number)
        direct.autocommit = True
        with direct.cursor() as cursor:
            for _ in range(20):
                cursor.execute(
                    "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
                    " WHERE application_name = 'latchkey' AND datname = current_database()"
                )
                time.sleep(0.05)
        is_over.set()
    assert (pool.size, pool.lent, len(pool._waiting)) == (5, 0, 0)
    with ExitStack() as connections:
        for _ in range(5):
            connections.enter_context(pool.connection())


def test_requests_at_once_fail_while_postgres_is_away_and_try_once_each():
    pool = Pool(f"postgresql://user@127.0.0.1:{free_port()}/none", size=8)

    def ask(_number: int) -> None:
        with pytest.raises(psycopg2.OperationalError, match="refused"), pool.connection():
            pass

    with ThreadPoolExecutor(8) as threads:
        list(threads.map(ask, range(24)))
    assert (pool._open, pool.size) == (0, 8)
