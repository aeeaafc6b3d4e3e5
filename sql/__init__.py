"""The thin data-access module: runs named statements from sql/*.sql, each prepared once per connection.

A statement's header declares its name, its parameters and their types, which become the signature of its
PREPARE, what it returns, and which columns may be NULL:

    -- name: select_user(user_id uuid, email text) -> row? (phone?, banned_until?)
    -- Why, if a reader would ask.
    SELECT … WHERE id = :user_id

Each is a function of `sql.queries`: it returns a `row`, which is always there, a `row?` or None, a list of
`rows`, or, without an arrow, the number of affected rows.

No value is ever formatted into a statement. Connections are in autocommit: outside of `Database.transaction`,
each statement is a transaction.
"""

import functools
import json
import math
import re
from abc import ABC, abstractmethod
from collections import namedtuple
from collections.abc import Callable, Container, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psycopg2
from psycopg2 import sql as composed
from psycopg2.errors import FeatureNotSupported, InternalError_, InvalidSqlStatementName
from psycopg2.extensions import cursor as Cursor
from psycopg2.extras import Json

from sql.pool import BEGIN, READ_COMMITTED, SIZE, TYPES, Connection, Pool

DIRECTORY = Path(__file__).parent
_HEADER = re.compile(
    r"^-- name: ([a-z_]+)\(([^)]*)\)"
    r"(?:(?: |\n-- +)-> (rows|row\??)(?:(?: |\n-- +)\(([^)]*)\))?)?\n(?:--.*\n)*",
    re.MULTILINE,
)
# Parameters, and text that only looks like one: strings, comments, casts.
_TOKENS = re.compile(r"'(?:[^']|'')*'|--[^\n]*|::|:([a-z_][a-z0-9_]*)")
# The errors of a prepared statement after a restore, which replaces types and results.
_OUTDATED = (InvalidSqlStatementName, FeatureNotSupported, InternalError_)

# By statement, whose columns a restore of the database does not change.
_row_types: dict[str, Callable[[Any], Any]] = {}

psycopg2.extensions.register_adapter(
    dict, functools.partial(Json, dumps=functools.partial(json.dumps, ensure_ascii=False))
)


class InvalidStatement(Exception):
    """A statement does not match its header."""


@dataclass(frozen=True)
class Statement:
    """A named statement with the types of its parameters. Its texts are templates for psycopg2."""

    name: str
    parameters: Mapping[str, str]
    text: str
    # "row", "row?", "rows", or "" for the number of affected rows.
    returns: str
    # The columns that may be NULL.
    nullable: frozenset[str]

    def prepare(self, constants: Container[str] = ()) -> str:
        """Return the PREPARE, with templates for the constants only."""
        varying = [parameter for parameter in self.parameters if parameter not in constants]
        types = f" ({', '.join(self.parameters[parameter] for parameter in varying)})" if varying else ""
        numbers = {parameter: f"${number}" for number, parameter in enumerate(varying, 1)}
        return f"PREPARE {self.name}{types} AS {self._substitute(self._placeholders | numbers)}"

    def execute(self, constants: Container[str] = ()) -> str:
        values = ", ".join(f"%({parameter})s" for parameter in self.parameters if parameter not in constants)
        return f"EXECUTE {self.name}" + (f" ({values})" if values else "")

    @property
    def direct(self) -> str:
        """The statement unprepared, for poolers in transaction mode."""
        return self._substitute(self._placeholders)

    @property
    def _placeholders(self) -> dict[str, str]:
        return {parameter: f"%({parameter})s::{type}" for parameter, type in self.parameters.items()}

    def _substitute(self, replacements: Mapping[str, str]) -> str:
        def replace(match: re.Match[str]) -> str:
            return replacements[match[1]] if match[1] else match[0]

        return _TOKENS.sub(replace, self.text.replace("%", "%%"))


def load_statements(directory: Path = DIRECTORY) -> dict[str, Statement]:
    """Read all statements. Raises `InvalidStatement`."""
    statements: dict[str, Statement] = {}
    for path in sorted(directory.glob("*.sql")):
        for statement in _parse(path.read_text(), path.name):
            if statement.name in statements:
                raise InvalidStatement(f"{path.name}: {statement.name} is there twice")
            statements[statement.name] = statement
    return statements


shipped = functools.cache(load_statements)


def _parse(text: str, where: str) -> Iterator[Statement]:
    headers = list(_HEADER.finditer(text))
    if len(headers) != text.count("-- name:"):
        raise InvalidStatement(f"{where}: a header is malformed")
    for header, following in zip(headers, [*headers[1:], None], strict=True):
        name, declared, returns, nullable = (
            " ".join((part or "").replace("--", " ").split()) for part in header.groups()
        )
        parameters = dict(
            parameter.strip().split(" ", 1) for parameter in declared.split(",") if parameter.strip()
        )
        body = text[header.end() : following.start() if following else None].strip().rstrip(";")
        used = {match[1] for match in _TOKENS.finditer(body) if match[1]}
        if used != set(parameters):
            raise InvalidStatement(f"{where}: {name} declares {sorted(parameters)} and uses {sorted(used)}")
        columns = frozenset(column.strip().removesuffix("?") for column in nullable.split(",") if column)
        yield Statement(name, parameters, body, returns, columns)


class Runner(ABC):
    """What a statement runs on: a database or a transaction."""

    @abstractmethod
    def _cursor(self, name: str, parameters: Mapping[str, Any]) -> AbstractContextManager[Cursor]: ...


def query_of(statement: Statement) -> Callable[..., Any]:
    """Return the function that runs a statement."""
    name, returns = statement.name, statement.returns

    def run(on: Runner, /, **parameters: Any) -> Any:
        with on._cursor(name, parameters) as cursor:
            if not returns:
                return cursor.rowcount
            make = _row_type(statement, cursor)
            if returns == "rows":
                return [*map(make, cursor.fetchall())]
            found = cursor.fetchone()
            return None if found is None and returns == "row?" else make(found)

    run.__name__ = name
    return run


@dataclass(frozen=True)
class Transaction(Runner):
    """Runs statements on one connection, between BEGIN and COMMIT."""

    _database: "Database"
    _connection: Connection

    def call(self, function: tuple[str, str], argument: dict[str, Any]) -> str | None:
        """Call a function of the operator, by schema and name, with JSON, and return its result as text."""
        # The only value that becomes part of a statement: a setting, quoted as an identifier.
        call = composed.SQL("SELECT {}(%s)::text").format(composed.Identifier(*function))
        with self._connection.cursor() as cursor:
            cursor.execute(call, (argument,))
            (result,) = cursor.fetchone() or (None,)
            return result

    def _cursor(self, name: str, parameters: Mapping[str, Any]) -> AbstractContextManager[Cursor]:
        return self._database._execute(self._connection, name, parameters)


class Database(Runner):
    """Runs named statements on pooled connections, each in its own transaction.

    Parameters with the name of a constant always have its value. The parameter `origin` is what `origin()`
    returns when the statement runs. Every method raises `psycopg2.Error`; `OperationalError` and
    `InterfaceError` mean that the database is away. With `has_timeouts=False`, for long work, statements have
    no time limit. From `last` on, a time of `time.monotonic`, Postgres is given up.
    """

    def __init__(
        self,
        url: str,
        *,
        size: int = SIZE,
        prepare: bool = True,
        constants: Mapping[str, Any] | None = None,
        origin: Callable[[], Mapping[str, Any]] = dict,
        has_timeouts: bool = True,
        last: float = math.inf,
    ) -> None:
        self._prepares = prepare
        self._origin = origin
        self._statements = shipped()
        self._constants = {
            name: {key: value for key, value in (constants or {}).items() if key in statement.parameters}
            for name, statement in self._statements.items()
        }
        self._texts = {
            name: statement.execute(self._constants[name])
            if prepare
            else f"{READ_COMMITTED}; {statement.direct}"
            for name, statement in self._statements.items()
        }
        self.pool = Pool(url, size, has_timeouts, last)
        self.statements_run = 0

    @contextmanager
    def transaction(self) -> Iterator[Transaction]:
        """Run the block's statements as one transaction; an exception rolls it back.

        A statement run by the database itself would take a second connection from the pool.
        """
        with self.pool.connection() as connection, connection.cursor() as cursor:
            # In a transaction a failed statement cannot be prepared again.
            cursor.execute(f"{BEGIN}; {TYPES}")
            if (types := cursor.fetchone()) != connection.types:
                _forget_statements(connection)
                connection.types = types
            try:
                yield Transaction(self, connection)
            except _OUTDATED:
                connection.close()
                raise
            except BaseException:
                with suppress(psycopg2.Error):  # the pool closes a connection that is still in a transaction
                    cursor.execute("ROLLBACK")
                raise
            cursor.execute("COMMIT")
            if cursor.statusmessage != "COMMIT":
                raise psycopg2.InternalError("rolled back: the block went on after a statement had failed")

    def close(self) -> None:
        self.pool.close()

    @contextmanager
    def _cursor(self, name: str, parameters: Mapping[str, Any]) -> Iterator[Cursor]:
        """Execute a statement. If it is outdated, prepare it again once."""
        with self.pool.connection() as connection:
            try:
                cursor = self._execute(connection, name, parameters)
            except _OUTDATED:
                if name not in connection.prepared:
                    raise
                _forget_statements(connection)
                cursor = self._execute(connection, name, parameters)
            with cursor:
                yield cursor

    def _execute(self, connection: Connection, name: str, parameters: Mapping[str, Any]) -> Cursor:
        self.statements_run += 1
        cursor = connection.cursor()
        statement, constants = self._statements[name], self._constants[name]
        if "origin" in statement.parameters:
            parameters = {**parameters, "origin": self._origin()}
        if not self._prepares:
            parameters = {**parameters, **constants}
        elif name not in connection.prepared:
            # On first use, because preparing all statements takes Postgres 10 MB per connection.
            cursor.execute(statement.prepare(constants), constants)
            connection.prepared.add(name)
        cursor.execute(self._texts[name], parameters)
        return cursor


def _row_type(statement: Statement, cursor: Cursor) -> Callable[[Any], Any]:
    if statement.name not in _row_types:
        row: Any = namedtuple("Row", [column.name for column in cursor.description or ()])  # type: ignore[misc]
        _row_types[statement.name] = row._make
    return _row_types[statement.name]


def _forget_statements(connection: Connection) -> None:
    with connection.cursor() as cursor:
        cursor.execute("DEALLOCATE ALL")
    connection.prepared.clear()
