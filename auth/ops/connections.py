"""Connections of commands: without timeouts, also to databases that are created, renamed or dropped."""

from collections.abc import Iterator
from contextlib import AbstractContextManager, closing, contextmanager, nullcontext
from dataclasses import dataclass

from psycopg2 import sql as composed
from psycopg2.extras import NamedTupleCursor

import sql
from sql import Call, Database, Runner
from sql.pool import NO_TIMEOUTS, Connection, connect_patiently

_STATEMENTS = sql.shipped()


@dataclass(frozen=True)
class Unprepared(Runner):
    """Runs named statements on a connection of `connect`."""

    connection: Connection

    def _lend(self) -> AbstractContextManager[Connection]:
        return nullcontext(self.connection)

    def _execute(self, connection: Connection, *calls: Call) -> NamedTupleCursor:
        cursor = connection.cursor(cursor_factory=NamedTupleCursor)
        for name, parameters in calls:
            cursor.execute(_STATEMENTS[name].direct, parameters)
        return cursor


def connect(url: str) -> Connection:
    """Open a connection without timeouts, overriding those of the role."""
    connection = connect_patiently(url)
    with connection, connection.cursor() as cursor:
        cursor.execute(f"SET timezone = 'UTC'; {NO_TIMEOUTS}")
    return connection


@contextmanager
def autocommitting(url: str) -> Iterator[Connection]:
    """Open such a connection that commits each statement, as those about databases need."""
    with closing(connect(url)) as connection:
        connection.autocommit = True
        yield connection


def execute(connection: Connection, text: str, *names: str) -> None:
    """Run a statement with the names of databases or a schema."""
    with connection.cursor() as cursor:
        cursor.execute(composed.SQL(text).format(*map(composed.Identifier, names)))


def single(url: str) -> closing[Database]:
    """Open a database with one connection and the timeouts of requests."""
    return closing(Database(url, size=1, prepare=False))
