"""Direct access to the tables."""

from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import closing, contextmanager
from datetime import datetime
from functools import partial
from typing import Any

import psycopg2
from psycopg2.extras import NamedTupleCursor

from sql.pool import Connection
from tests.support.processes import wait_until

# Statements that wait for a lock which a test or a service holds. Autovacuum, which the Postgres of TEST_DATABASE_URL
# may run beside the tests, also makes statements wait for a moment.
_WAITING = """
  FROM pg_stat_activity AS waiting
 WHERE datname = current_database() AND wait_event_type = 'Lock'
   AND EXISTS (SELECT
                 FROM pg_stat_activity AS holder
                WHERE holder.pid = ANY (pg_blocking_pids(waiting.pid)) AND holder.backend_type = 'client backend')
"""
_MISPLACED = """
SELECT u.email
  FROM users AS u
  LEFT JOIN user_objects AS o ON o.user_id = u.id
 WHERE o.last_sign_in_at IS DISTINCT FROM coalesce(u.last_sign_in_at, '-infinity')
"""

# `empty` runs VACUUM once in this number of calls.
_TESTS_BETWEEN_VACUUMS = 40
_GROWN_TABLES = """
SELECT string_agg(format('%%I', relname), ', ') AS tables
  FROM pg_class
 WHERE relkind = 'r' AND relnamespace = 'public'::regnamespace AND pg_relation_size(oid) > 16384
"""


class Lock:
    """A locked row. A call that is started here runs until it waits for that row, or for a row that another
    call holds.
    """

    def __init__(self, rows: "Rows", threads: ThreadPoolExecutor) -> None:
        self._rows = rows
        self._threads = threads
        self._waiting = 0

    def start(self, call: Callable[[], Any]) -> Future[Any]:
        """Run `act` in a thread until it waits for a lock, and return its future."""
        self._waiting += 1
        future = self._threads.submit(call)
        wait_until(lambda: future.done() or self._rows.waiting() == self._waiting)
        assert not future.done(), f"it did not wait: {future.result()}"
        return future


class Rows:
    """Runs SQL in autocommit, with parameters as psycopg2 takes them: `%(email)s`."""

    def __init__(self, url: str, kept_key_id: bytes = b"") -> None:
        self._url = url
        # OpenID keys that are sealed with this one stay.
        self._kept_key_id = kept_key_id
        self._can_empty = False
        self._times_emptied = 0
        # The names of prepared statements.
        self._names: dict[str, str] = {}
        # The rows have the types that the service gets.
        factory = partial(Connection, deadline=None)
        self._connection = psycopg2.connect(url, connection_factory=factory, cursor_factory=NamedTupleCursor)
        self._connection.autocommit = True
        names = self.all(
            "SELECT format('%%I', tablename) AS name FROM pg_tables WHERE schemaname = 'public' AND tablename <> 'schema_version'"
        )
        self._tables = sorted((row.name for row in names), key=lambda name: (name != "users", name))

    def run(self, statement: str, **parameters: Any) -> int:
        """Run a statement, and return the number of affected rows."""
        with self._connection.cursor() as cursor:
            cursor.execute(statement, parameters)
            return cursor.rowcount

    def insert_many(self, statement: str) -> None:
        """Insert many rows. Triggers and foreign keys that were planned for empty tables would scan them for
        each row.
        """
        with closing(psycopg2.connect(self._url, options="-c enable_seqscan=off")) as connection, connection:
            connection.cursor().execute(statement)

    def fill(self, table: str, statement: str, **parameters: Any) -> None:
        """Insert many rows into a table and index them afterwards, which takes two thirds of the time."""
        indexes = self.all(
            "SELECT indexname AS name, indexdef AS definition FROM pg_indexes"
            " WHERE tablename = %(table)s AND indexname <> %(table)s || '_pkey'",
            table=table,
        )
        drop = [f"DROP INDEX {index.name}" for index in indexes]
        create = [index.definition.replace("%", "%%") for index in indexes]
        self.run("; ".join([*drop, statement, *create]), **parameters)

    def all(self, statement: str, **parameters: Any) -> list[Any]:
        """Return all rows, as named tuples."""
        with self._connection.cursor() as cursor:
            cursor.execute(statement, parameters)
            return cursor.fetchall()

    def one(self, statement: str, **parameters: Any) -> Any:
        """Return the only row."""
        (row,) = self.all(statement, **parameters)
        return row

    def value(self, statement: str, **parameters: Any) -> Any:
        """Return the only value."""
        (value,) = self.one(statement, **parameters)
        return value

    def now(self) -> datetime:
        return self.value("SELECT now()")

    def count(self, table: str, condition: str = "true", **parameters: Any) -> int:
        return self.value(f"SELECT count(*) FROM {table} WHERE {condition}", **parameters)

    def everything(self, *tables: str) -> dict[str, list[Any]]:
        """Return the contents of these tables, or of all tables, to see whether a request changed anything.

        Rows of the audit log with a reason are left out, because a recorded refusal is not a change, and so is the
        table of what a delivery process did last.
        """
        rows_of_table = "'{0}', (SELECT coalesce(json_agg(row ORDER BY row::text), '[]') FROM {0} AS row WHERE to_jsonb(row) ->> 'reason' IS NULL)"
        present = [table for table in self._tables if table != "last_done"]
        parts = ", ".join(rows_of_table.format(table) for table in tables or present)
        return self.value(self._prepared(f"SELECT json_build_object({parts})"))

    @contextmanager
    def locked(self, table: str, id: str, statement: str | None = None) -> Iterator[Lock]:
        """Lock a row until the end of the block. Calls that wait for it continue in order.

        A `statement`, which takes the id, may change the row; it is committed at the end.
        """
        holder = psycopg2.connect(self._url)
        with ThreadPoolExecutor() as threads:
            try:
                with holder.cursor() as cursor:
                    cursor.execute(statement or f"SELECT FROM {table} WHERE id = %s FOR UPDATE", (id,))
                yield Lock(self, threads)
                holder.commit()
            finally:
                holder.close()

    def waiting(self) -> int:
        """Return how many statements wait for a lock."""
        return self.value(f"SELECT count(*) {_WAITING}")

    def cancel_waiting(self) -> None:
        """Cancel the statements that wait for a lock."""
        self.run(f"SELECT pg_cancel_backend(pid) {_WAITING}")

    def outdate_functions(self) -> None:
        """Make the next application of the schema replace the functions."""
        self.run("UPDATE schema_version SET functions_digest = 'another'")

    def misplaced(self) -> list[Any]:
        """Return the users whose place in the order by last sign-in is missing or wrong."""
        return self.all(self._prepared(_MISPLACED))

    def leave(self) -> list[Any]:
        """Delete the fingerprints, because the services of later tests have other keys, and return
        `misplaced()`.
        """
        return self.all(self._prepared(f"WITH deleted AS (DELETE FROM key_fingerprints) {_MISPLACED}"))

    def empty(self) -> None:
        """Delete all rows but the OpenID keys of the suite, which running services remember; after every 40th time,
        vacuum. Autovacuum would run at any moment, and have Postgres choose other plans from then on.
        """
        if not self._can_empty:
            # DELETE, because TRUNCATE takes milliseconds for each table; in a function, which caches the
            # plans; users first, with whom most rows go. A table without a page has no row.
            deletions = " ".join(
                f"IF pg_relation_size('{table}'::regclass) > 0 THEN DELETE FROM {table}; END IF;"
                for table in self._tables
                if table != "openid_keys"
            )
            deletions += (
                f" DELETE FROM openid_keys WHERE substr(sealed, 1, 4) <> '\\x{self._kept_key_id.hex()}';"
            )
            self.run(
                f"CREATE FUNCTION pg_temp.empty() RETURNS void LANGUAGE plpgsql AS $$ BEGIN {deletions} END $$"
            )
            self._can_empty = True
        self.run("SELECT pg_temp.empty()")
        self._times_emptied += 1
        if self._times_emptied % _TESTS_BETWEEN_VACUUMS == 0 and (tables := self.value(_GROWN_TABLES)):
            self.run(f"VACUUM {tables}")

    def truncate(self) -> None:
        """Delete all rows and free their space after a test of many rows, because scans of later tests would read it."""
        self.run(f"TRUNCATE {', '.join(self._tables)}")

    def _prepared(self, statement: str) -> str:
        """Prepare a statement, which takes longer to plan than to run, and return the statement that executes it."""
        if statement not in self._names:
            self._names[statement] = f"statement_{len(self._names)}"
            self.run(f"PREPARE {self._names[statement]} AS {statement}")
        return f"EXECUTE {self._names[statement]}"

    def close(self) -> None:
        self._connection.close()
