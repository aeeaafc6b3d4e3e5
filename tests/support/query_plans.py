"""The plan of a named statement: the indexes that it uses, its sequential scans, and the statistics behind both."""

from collections.abc import Iterable, Iterator
from contextlib import closing, contextmanager
from typing import Any, NamedTuple

import psycopg2
from psycopg2.extras import NamedTupleCursor

import sql
from sql import Call, Database
from sql.pool import Connection, connect

STATEMENTS = sql.load_statements()
# Postgres may choose a generic plan after five executions of a statement.
_RUNS = 6


class Plan(NamedTuple):
    """The indexes that a plan uses, the tables that it scans sequentially, and the columns that it sorts by."""

    indexes: set[str]
    read_whole: set[str]
    sorts: bool


def plan_of(url: str, name: str, first: str | None = None, mode: str = "auto", /, **parameters: Any) -> Plan:
    """Return the plan of a prepared statement after several executions, and undo its changes.

    The statement `first` runs before it in the same transaction.
    """
    statement = STATEMENTS[name]
    values = dict.fromkeys(statement.parameters) | parameters
    connection = connect(url)
    try:
        connection.autocommit = False
        with connection.cursor() as cursor:
            # As in a service, by default; the Postgres of the tests makes only generic plans.
            cursor.execute("SELECT set_config('plan_cache_mode', %s, true)", (mode,))
            if first:
                cursor.execute(STATEMENTS[first].direct, values)
            cursor.execute(statement.prepare(), {})
            for _ in range(_RUNS):
                cursor.execute("SAVEPOINT run")
                cursor.execute(statement.execute(), values)
                cursor.execute("ROLLBACK TO run")
            cursor.execute(f"EXPLAIN (FORMAT JSON) {statement.execute()}", values)
            ((explanation,),) = cursor.fetchall()
    finally:
        connection.rollback()
        connection.close()
    nodes = list(_nodes(explanation[0]["Plan"]))
    return Plan(
        {node["Index Name"] for node in nodes if "Index Name" in node},
        {node["Relation Name"] for node in nodes if node["Node Type"] == "Seq Scan"},
        any(node["Node Type"] == "Sort" for node in nodes),
    )


def analyze(url: str) -> None:
    """Remove the dead rows of all tables, and count their rows.

    After `truncate()`, plans and estimates then depend on the rows of the test alone, whether or not autovacuum
    has run: a table that nothing has analyzed is taken for ten pages, and the space of earlier rows counts.
    """
    with closing(psycopg2.connect(url)) as connection, connection.cursor() as cursor:
        connection.autocommit = True
        cursor.execute(
            "SELECT string_agg(oid::regclass::text, ', ') FROM pg_class"
            " WHERE relnamespace = 'public'::regnamespace AND relkind = 'r'"
        )
        ((tables,),) = cursor.fetchall()
        cursor.execute(f"VACUUM (ANALYZE) {tables}")


@contextmanager
def estimated(url: str, table: str, rows: int) -> Iterator[None]:
    """Make Postgres estimate this number of rows for a table, and keep autovacuum from counting them."""
    with closing(psycopg2.connect(url)) as connection, connection.cursor() as cursor:
        connection.autocommit = True
        # One transaction, whose lock autovacuum does not wait for.
        cursor.execute(
            f"ALTER TABLE {table} SET (autovacuum_enabled = false);"
            f"UPDATE pg_class SET reltuples = {rows} WHERE oid = '{table}'::regclass"
        )
        try:
            yield
        finally:
            cursor.execute(f"ALTER TABLE {table} RESET (autovacuum_enabled)")
            cursor.execute(f"VACUUM (ANALYZE) {table}")


def _nodes(plan: dict[str, Any]) -> Iterator[dict[str, Any]]:
    yield plan
    for child in plan.get("Plans", ()):
        yield from _nodes(child)


_ROWS_OF_SCAN = ("Actual Rows", "Rows Removed by Filter", "Rows Removed by Index Recheck")


class Recorded(Database):
    """A database that remembers its statements, with their parameters."""

    def __init__(self, url: str) -> None:
        super().__init__(url)
        self.calls: list[Call] = []

    def _execute(
        self, connection: Connection, *calls: Call, before: str = "", after: str = ""
    ) -> NamedTupleCursor:
        self.calls += calls
        return super()._execute(connection, *calls, before=before, after=after)


def rows_read(url: str, calls: Iterable[Call]) -> int:
    """Run statements again, planned with their values, and return how many rows of tables and indexes they read."""
    total = 0
    with closing(psycopg2.connect(url)) as connection, connection.cursor() as cursor:
        for name, parameters in calls:
            cursor.execute(
                f"EXPLAIN (ANALYZE, TIMING OFF, FORMAT JSON) {STATEMENTS[name].direct}", parameters
            )
            ((explanation,),) = cursor.fetchall()
            for node in _nodes(explanation[0]["Plan"]):
                if "Relation Name" in node:
                    rows = sum(node.get(key, 0) for key in _ROWS_OF_SCAN)
                    total += node["Actual Loops"] * rows
    return round(total)
