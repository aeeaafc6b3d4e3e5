"""The pool of connections to Postgres, and the timeouts of its connections."""

from contextlib import closing
from operator import attrgetter
from urllib.parse import quote

import psycopg2
import pytest

from sql.pool import connect
from tests.support.processes import free_port


def test_connection_has_timeouts(database_url):
    with closing(connect(database_url)) as connection, connection.cursor() as cursor:
        for name, value in (
            ("statement_timeout", "5s"),
            ("lock_timeout", "2s"),
            ("idle_in_transaction_session_timeout", "10s"),
        ):
            cursor.execute(f"SHOW {name}")
            assert cursor.fetchone() == (value,)


def test_connection_goes_to_the_next_host_when_the_first_refuses(database_url):
    with closing(psycopg2.connect(database_url)) as direct:
        user, password, host, port, name = (
            quote(str(value or ""), safe="")
            for value in attrgetter("user", "password", "host", "port", "dbname")(direct.info)
        )
    url = f"postgresql://{user}:{password}@/{name}?host=127.0.0.1,{host}&port={free_port()},{port}"
    with closing(connect(url)) as connection:
        assert str(connection.info.port) == port


def test_refused_connection_is_an_error_that_names_host_and_port_but_no_password():
    port = free_port()
    with pytest.raises(psycopg2.OperationalError) as raised:
        connect(f"postgresql://auth:topsecret@127.0.0.1:{port}/auth")
    assert str(raised.value).startswith(
        f'connection to server at "127.0.0.1", port {port} failed: Connection refused'
    )
    assert "topsecret" not in str(raised.value)
