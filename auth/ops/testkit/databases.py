"""One database for each service, copied from a template with the schema."""

import hashlib
import os
import secrets
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import quote, urlsplit

import psycopg2
from psycopg2 import sql as composed
from psycopg2.extensions import parse_dsn

from auth.core.settings import state
from auth.core.settings.values.encryption import remote_hosts
from auth.ops.connections import Unprepared, autocommitting, connect, execute
from auth.ops.processes import embedded_postgres
from auth.ops.testkit import Refused
from sql import queries, roles, schema
from sql.pool import Connection

VARIABLE = "LATCHKEY_TEST_DATABASE_URL"
_FUNCTIONS = Path(__file__).with_name("functions.sql")
# The comment of databases that may be dropped.
_MARK = "test database of Latchkey"
_DROP = "DROP DATABASE IF EXISTS {} WITH (FORCE)"
_PREFIX = "latchkey_test_"
# A crash may lose everything. Vacuums every five seconds: each test leaves dead rows.
_OPTIONS = {
    "fsync": "off",
    "synchronous_commit": "off",
    "full_page_writes": "off",
    "max_connections": "500",
    "autovacuum_naptime": "5s",
}


@dataclass(frozen=True)
class KitDatabase:
    """The URL for requests, and a connection of the owner, which marks the database as in use."""

    url: str
    connection: Connection


class Databases:
    """Creates databases in the Postgres of a URL, and drops them when it is closed.

    `of_requests` turns the owner's URL into that of the role of requests. Without it, they are the same.
    """

    def __init__(self, url: str, of_requests: Callable[[str], str] | None = None) -> None:
        self._url = url
        self._of_requests = of_requests
        self._made: dict[str, KitDatabase] = {}

    def make(self) -> KitDatabase:
        """Make a database. Raises `psycopg2.Error`."""
        with self._locked() as connection:
            rows = queries.list_test_databases(Unprepared(connection), mark=_MARK)
            marked = {row.name: row.is_used for row in rows}
            sources = (schema.SCHEMA, *sorted(schema.FUNCTIONS.glob("*.sql")), roles.GRANTS, _FUNCTIONS)
            digest = hashlib.sha256(b"".join(path.read_bytes() for path in sources)).hexdigest()
            template = f"{_PREFIX}template_{digest[:16]}"
            for name, is_used in marked.items():
                # Left by test servers that were killed.
                if not is_used and not name.startswith(f"{_PREFIX}template_"):
                    execute(connection, _DROP, name)
            if template not in marked:
                draft = _create(connection, "template0")
                requests_url = self._of_requests(self._of(draft)) if self._of_requests else None
                schema.apply(self._of(draft), requests_url=requests_url)
                with closing(connect(self._of(draft))) as drafted, drafted:
                    drafted.cursor().execute(_FUNCTIONS.read_text(encoding="utf-8"))
                execute(connection, "ALTER DATABASE {} RENAME TO {}", draft, template)
            name = _create(connection, template)
            url = self._of_requests(self._of(name)) if self._of_requests else self._of(name)
            database = self._made[name] = KitDatabase(url, connect(self._of(name)))
            database.connection.autocommit = True
            return database

    def close(self) -> None:
        with self._locked() as connection:
            for name, database in self._made.items():
                database.connection.close()
                execute(connection, _DROP, name)

    def _of(self, name: str) -> str:
        return _renamed(self._url, name)

    @contextmanager
    def _locked(self) -> Iterator[Connection]:
        """Lock out other test servers meanwhile. The lock ends with the connection."""
        with autocommitting(self._url) as connection:
            queries.lock_test_databases(Unprepared(connection))
            yield connection


@contextmanager
def opened(directory: Path) -> Iterator[Databases]:
    """Open the Postgres of `LATCHKEY_TEST_DATABASE_URL`, or start an embedded one.

    Raises `Refused`, `EmbeddedPostgresError` and `psycopg2.Error`.
    """
    # libpq would take hosts from these.
    for name in [name for name in os.environ if name.startswith("PG")]:
        del os.environ[name]
    if url := os.environ.get(VARIABLE):
        refuse_remote(url)
        with closing(Databases(url)) as databases:
            yield databases
        return
    with embedded_postgres.running(directory, _OPTIONS) as url:
        yield Databases(url, state.of_requests)


def refuse_remote(url: str) -> None:
    """Raise `Refused` unless all hosts of a URL are this machine, and its path names the database."""
    try:
        parts = parse_dsn(url)
        # With `dbname` in the query, all test databases would be that one.
        is_url = parse_dsn(_renamed(url, _PREFIX))["dbname"] == _PREFIX
    except psycopg2.ProgrammingError:
        is_url = False
    if not is_url:
        raise Refused(f"{VARIABLE} must be a URL such as postgresql://postgres@localhost/postgres")
    remote = remote_hosts(url)
    if remote or "service" in parts:
        raise Refused(
            f"{VARIABLE} must name a Postgres of this machine, not {', '.join(remote) or 'a service'}"
        )


def _renamed(url: str, name: str) -> str:
    parts = urlsplit(url)
    # geturl would drop the slashes of postgresql:///postgres.
    return f"{parts.scheme}://{parts.netloc}/{quote(name)}?{parts.query}"


def _create(connection: Connection, template: str) -> str:
    name = _PREFIX + secrets.token_hex(8)
    execute(connection, "CREATE DATABASE {} TEMPLATE {} ENCODING 'UTF8'", name, template)
    comment = composed.SQL("COMMENT ON DATABASE {} IS {}")
    with connection.cursor() as cursor:
        cursor.execute(comment.format(composed.Identifier(name), composed.Literal(_MARK)))
    return name
