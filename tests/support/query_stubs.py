"""Writes sql/queries.pyi, the types of the statements as Postgres describes them. `make queries` calls this.

It uses psycopg 3, because psycopg2 cannot describe a statement without executing it.
"""

import tempfile
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

import psycopg

import sql
from auth.core import settings
from auth.core.settings.statement_constants import statement_constants
from auth.ops.processes.embedded_postgres import EmbeddedPostgres
from sql import Statement, schema

STUBS = sql.DIRECTORY / "queries.pyi"
_HEAD = '''"""The types of the named statements. Written by `make queries`; do not edit."""

from collections.abc import Sequence
from datetime import datetime
from typing import Any, NamedTuple

from sql import Runner
'''
# The types of Postgres in Python: those of columns, and where they differ those of parameters.
_COLUMNS = {
    "bigint": "int",
    "boolean": "bool",
    "bytea": "memoryview",
    "double precision": "float",
    "inet": "str",
    "integer": "int",
    "json": "Any",
    "jsonb": "Any",
    "name": "str",
    "oid": "int",
    "smallint": "int",
    "text": "str",
    "timestamp with time zone": "datetime",
    "uuid": "str",
    "void": "str",
}
_PARAMETERS = _COLUMNS | {"bytea": "bytes | memoryview", "timestamp with time zone": "datetime | str"}
# A domain has the type that it is made of.
_NAME_OF_TYPE = """
SELECT format_type(coalesce(nullif(element.typbasetype, 0), element.oid), NULL), element.oid <> type.oid
  FROM pg_type AS type
  JOIN pg_type AS element ON element.oid = CASE type.typcategory WHEN 'A' THEN type.typelem ELSE type.oid END
 WHERE type.oid = %s
"""


def stubs(database_url: str) -> str:
    """Return the types of all statements, described by a database that has the schema."""
    constants = {
        *statement_constants(settings.load("/dev/null", missing_secrets="ignore")),
        "origin",
        "acted_at",
    }
    with psycopg.connect(database_url, autocommit=True) as connection:
        return "\n".join(
            [_HEAD, *(_stub(connection, each, constants) for each in sql.load_statements().values())]
        )


def _stub(connection: psycopg.Connection, statement: Statement, constants: set[str]) -> str:
    connection.execute(statement.prepare().replace("%%", "%").encode())
    described = connection.pgconn.describe_prepared(statement.name.encode())
    types = _types(connection, map(described.param_type, range(described.nparams)), _PARAMETERS)
    parameters = "".join(
        f", {name}: {type} | None"
        for name, type in zip(statement.parameters, types, strict=True)
        if name not in constants
    )
    row = "".join(part.capitalize() for part in statement.name.split("_"))
    returned = {"row": row, "row?": f"{row} | None", "rows": f"list[{row}]", "": "int"}[statement.returns]
    signature = f"on: Runner, /{', *' if parameters else ''}{parameters}"
    lines = [f"def {statement.name}({signature}) -> {returned}: ...", ""]
    if statement.returns:
        names = [(described.fname(i) or b"").decode() for i in range(described.nfields)]
        types = _types(connection, map(described.ftype, range(described.nfields)), _COLUMNS)
        columns = [
            _column(name, type, name in statement.nullable) for name, type in zip(names, types, strict=True)
        ]
        lines = [f"class {row}(NamedTuple):", *columns, "", *lines]
    return "\n".join(lines)


def _column(name: str, type: str, is_nullable: bool) -> str:
    # Tuples have a method `count`.
    ignored = "  # type: ignore[assignment]" if name == "count" else ""
    return f"    {name}: {type}{' | None' if is_nullable and type != 'Any' else ''}{ignored}"


def _types(connection: psycopg.Connection, oids: Iterable[int], python: Mapping[str, str]) -> Iterator[str]:
    for oid in oids:
        ((name, is_array),) = connection.execute(_NAME_OF_TYPE, [oid]).fetchall()
        if not is_array:
            yield python[name]
        elif python is _PARAMETERS:
            yield f"Sequence[{python[name]} | None]"
        else:
            yield f"list[{python[name]}]"


def main() -> None:
    with tempfile.TemporaryDirectory() as directory:
        postgres = EmbeddedPostgres(Path(directory))
        try:
            url = postgres.start()
            schema.apply(url)
            STUBS.write_text(stubs(url))
        finally:
            postgres.stop()


if __name__ == "__main__":
    main()
