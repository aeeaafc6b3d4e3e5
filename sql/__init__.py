"""The thin data-access module: runs named statements from sql/*.sql, each prepared once per connection.

A statement's header declares its name, its parameters and their types, which become the signature of its
PREPARE, what it returns, and which columns may be NULL:

    -- name: select_user(user_id uuid, email text) -> row? (phone?, banned_until?)
    -- A comment, if needed.
    SELECT … WHERE id = :user_id

Each is a function of `sql.queries`. It returns a `row`, a `row?`, which may be None, a list of `rows`, or,
without an arrow, the number of affected rows.

No value is ever formatted into a statement. Connections are in autocommit: outside of `Database.transaction`,
each statement is a transaction.
"""

import functools
import json
import math
import re
from collections.abc import Callable, Container, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from dataclasses import dataclass
from datetime import datetime
from itertools import zip_longest
from pathlib import Path
from typing import Any, Concatenate, ParamSpec, TypeVar

import psycopg2
from psycopg2 import sql as composed
from psycopg2.errors import FeatureNotSupported, InternalError_, InvalidSqlStatementName
from psycopg2.extensions import TRANSACTION_STATUS_IDLE
from psycopg2.extras import Json, NamedTupleCursor

from sql.pool import BEGIN, READ_COMMITTED, SIZE, TYPES, Connection, Pool

DIRECTORY = Path(__file__).parent
_HEADER = re.compile(
    r"^-- name: ([a-z_]+)\(([^)]*)\)"
    r"(?:(?: |\n-- +)-> (rows|row\??)(?:(?: |\n-- +)\(([^)]*)\))?)?\n(?:--.*\n)*",
    re.MULTILINE,
)
# Parameters, and text that only looks like a parameter: strings, comments, casts.
_TOKENS = re.compile(r"'(?:[^']|'')*'|--[^\n]*|::|:([a-z_][a-z0-9_]*)")
# The errors of a prepared statement after a restore, which replaces types and results.
_OUTDATED = (InvalidSqlStatementName, FeatureNotSupported, InternalError_)

# One encoder, because `json.dumps` creates one for each call with `ensure_ascii=False`.
psycopg2.extensions.register_adapter(
    dict, functools.partial(Json, dumps=json.JSONEncoder(ensure_ascii=False).encode)
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
    for header, following in zip_longest(headers, headers[1:]):
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


Execute = Callable[[Connection, str, Mapping[str, Any]], NamedTupleCursor]
P = ParamSpec("P")
R = TypeVar("R")


class Runner:
    """Runs statements: a database, on connections of its pool, or a transaction, on its own connection."""

    _lend: Callable[[], AbstractContextManager[Connection]]
    _execute: Execute

    @property
    def acted_at(self) -> datetime:
        """The time of the act, for its statements with a parameter of this name."""
        raise RuntimeError("this statement writes for an act")


def query_of(statement: Statement) -> Callable[..., Any]:
    """Return the function that runs a statement."""
    name, returns = statement.name, statement.returns
    is_effect = "acted_at" in statement.parameters

    def run(on: Runner, /, **parameters: Any) -> Any:
        if is_effect:
            parameters["acted_at"] = on.acted_at
        with on._lend() as connection, on._execute(connection, name, parameters) as cursor:
            if not returns:
                return cursor.rowcount
            if returns == "rows":
                return cursor.fetchall()
            row = cursor.fetchone()
            if row is None and returns == "row":
                raise TypeError(f"{name} has returned no row")
            return row

    run.__name__ = name
    return run


@dataclass
class Transaction(Runner):
    """Runs statements on one connection, between BEGIN and COMMIT."""

    _lend: Callable[[], AbstractContextManager[Connection]]
    _execute: Execute

    def call(self, function: tuple[str, str], argument: dict[str, Any]) -> str | None:
        """Call a function of the operator, by schema and name, with JSON, and return its result as text."""
        # The only value in the text of a statement: a setting, quoted as an identifier.
        call = composed.SQL("SELECT {}(%s)::text").format(composed.Identifier(*function))
        with self._lend() as connection, connection.cursor() as cursor:
            cursor.execute(call, (argument,))
            (result,) = cursor.fetchone() or (None,)
            return result


@dataclass
class ShortTransaction(Transaction):
    """A transaction that takes a round trip for each statement: BEGIN travels with the first one, COMMIT with
    the last one.
    """

    _first: Execute
    _last: Execute
    # That of the facts which the first statement read.
    time: datetime | None = None

    @property
    def acted_at(self) -> datetime:
        return self.time or super().acted_at

    def begin_with(self, query: Callable[Concatenate[Runner, P], R], *args: P.args, **given: P.kwargs) -> R:
        """Run the first statement."""
        return query(Transaction(self._lend, self._first), *args, **given)

    def commit_with(
        self, effect: Callable[Concatenate[Runner, P], int], *args: P.args, **given: P.kwargs
    ) -> None:
        """Run the last statement, whose number of rows is not known."""
        effect(Transaction(self._lend, self._last), *args, **given)


class Database(Runner):
    """Runs named statements on pooled connections, each in its own transaction.

    Parameters with the name of a constant always have its value. The parameter `origin` is the result of
    `origin()` when the statement runs. Every method raises `psycopg2.Error`; `OperationalError` and
    `InterfaceError` mean that the database is unavailable. With `has_timeouts=False`, for long work,
    statements have no time limit. After `last`, a time of `time.monotonic`, it gives up on Postgres.
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
        self._lend = self.pool.connection

    @contextmanager
    def transaction(self, settings: str = "") -> Iterator[Transaction]:
        """Run the block's statements as one transaction; an exception rolls it back. `settings` are
        statements, SET LOCAL, that begin it.

        A statement run by the database itself would take a second connection from the pool.
        """
        with self.pool.connection() as connection, connection.cursor() as cursor:
            cursor.execute(f"{BEGIN}; {settings}; {TYPES}")
            if (types := cursor.fetchone()) != connection.types:
                _forget_statements(connection)
                connection.types = types
            try:
                yield Transaction(lambda: nullcontext(connection), self._execute)
            except _OUTDATED:
                connection.close()
                raise
            except BaseException:
                _roll_back(connection)
                raise
            cursor.execute("COMMIT")
            if cursor.statusmessage != "COMMIT":
                raise psycopg2.InternalError("rolled back: the block went on after a statement had failed")

    @contextmanager
    def short_transaction(self, settings: str = "") -> Iterator[ShortTransaction]:
        """Run the block's statements as one transaction, which is rolled back without `commit_with`.

        It does not look at `TYPES`: its statements must not have parameters of these.
        """
        first = functools.partial(self._execute, before=f"{BEGIN}; {settings}; ")
        last = functools.partial(self._execute, after="; COMMIT")
        with self.pool.connection() as connection:
            try:
                yield ShortTransaction(lambda: nullcontext(connection), self._execute, first, last)
            except _OUTDATED:
                connection.close()
                raise
            finally:
                if connection.get_transaction_status() != TRANSACTION_STATUS_IDLE:
                    _roll_back(connection)

    def close(self) -> None:
        self.pool.close()

    def _execute(
        self,
        connection: Connection,
        name: str,
        parameters: Mapping[str, Any],
        before: str = "",
        after: str = "",
    ) -> NamedTupleCursor:
        """Execute a statement, with BEGIN before it or COMMIT after it. If it is outdated, prepare it again
        once.
        """
        cursor = connection.cursor(cursor_factory=NamedTupleCursor)
        if "origin" in self._statements[name].parameters:
            parameters = {**parameters, "origin": self._origin()}
        if not self._prepares:
            parameters = {**parameters, **self._constants[name]}
        elif name not in connection.prepared:
            # On first use: preparing all statements takes 10 MB of Postgres per connection.
            self._prepare(connection, name)
        text = f"{before}{self._texts[name]}{after}"
        try:
            cursor.execute(text, parameters)
        except _OUTDATED:
            if before:
                _roll_back(connection)
            # In a transaction a failed statement cannot be prepared again.
            if not self._prepares or connection.get_transaction_status() != TRANSACTION_STATUS_IDLE:
                raise
            _forget_statements(connection)
            self._prepare(connection, name)
            cursor.execute(text, parameters)
        return cursor

    def _prepare(self, connection: Connection, name: str) -> None:
        constants = self._constants[name]
        with connection.cursor() as cursor:
            cursor.execute(self._statements[name].prepare(constants), constants)
        connection.prepared.add(name)


def _roll_back(connection: Connection) -> None:
    # The pool closes a connection that is still in a transaction.
    with suppress(psycopg2.Error), connection.cursor() as cursor:
        cursor.execute("ROLLBACK")


def _forget_statements(connection: Connection) -> None:
    with connection.cursor() as cursor:
        cursor.execute("DEALLOCATE ALL")
    connection.prepared.clear()
