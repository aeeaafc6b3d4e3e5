"""Further databases of the tests' Postgres, besides the worker's."""

import contextlib
import itertools
from collections.abc import Callable, Iterator
from typing import Any
from urllib.parse import quote, urlsplit

import psycopg2
from psycopg2.extensions import parse_dsn

from tests.support.tables import Rows

_numbers = itertools.count()


def emptied(url: str, worker: str | None) -> str:
    """Return the URL of an empty database: the given one, or `NAME_gw0` next to it for an xdist worker."""
    connection = psycopg2.connect(url)
    connection.autocommit = True
    with contextlib.closing(connection), connection.cursor() as cursor:
        if worker is None:
            cursor.execute("DROP SCHEMA public CASCADE; CREATE SCHEMA public")
            return url
        name = f"{connection.info.dbname}_{worker}"
        cursor.execute(f'DROP DATABASE IF EXISTS "{name}" WITH (FORCE)')
        cursor.execute(f'CREATE DATABASE "{name}"')
    return urlsplit(url)._replace(path=f"/{quote(name)}").geturl()


@contextlib.contextmanager
def new_databases(rows: Rows, database_url: str) -> Iterator[Callable[..., str]]:
    """Yield a function that makes a database and returns its URL; drop the databases at the end."""
    names: list[str] = []

    def make(script: str = "", options: str = "") -> str:
        names.append(f"{urlsplit(database_url).path[1:]}_{next(_numbers)}")
        rows.run(f"CREATE DATABASE {names[-1]} {options}")
        url = urlsplit(database_url)._replace(path=f"/{names[-1]}").geturl()
        if script:
            with (
                contextlib.closing(psycopg2.connect(url)) as connection,
                connection,
                connection.cursor() as cursor,
            ):
                cursor.execute(script)
        return url

    yield make
    for name in names:
        rows.run(f"DROP DATABASE {name} WITH (FORCE)")


def as_role(url: str, name: str, **options: str) -> str:
    """Return a URL for another role."""
    host = parse_dsn(url)["host"].replace("/", "%2F")
    password = f":{options['password']}" if options else ""
    return f"postgresql://{name}{password}@/{parse_dsn(url)['dbname']}?host={host}&port=5432"


def run(url: str, statement: str) -> list[Any]:
    with contextlib.closing(psycopg2.connect(url)) as connection, connection, connection.cursor() as cursor:
        cursor.execute(statement)
        return cursor.fetchall() if cursor.description else []
