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
from collections.abc import Callable, Container, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from dataclasses import dataclass, field
from datetime import datetime
from itertools import zip_longest
from pathlib import Path
from typing import Any, Concatenate, ParamSpec, TypeVar

import psycopg2
from psycopg2 import sql as composed
from psycopg2.errors import FeatureNotSupported, InternalError_, InvalidSqlStatementName
from psycopg2.extensions import TRANSACTION_STATUS_IDLE
from psycopg2.extras import Json, NamedTupleCursor

from sql.pool import ASYNCHRONOUS, BEGIN, MESSAGE_WRITTEN, READ_COMMITTED, SIZE, Connection, Pool

DIRECTORY = Path(__file__).parent
_HEADER = re.compile(
    r"^-- name: ([a-z_]+)\(([^)]*)\)"
    r"(?:(?: |\n-- +)-> (rows|row\??)(?:(?: |\n-- +)\(([^)]*)\))?)?\n(?:--.*\n)*",
    re.MULTILINE,
)
# Parameters, and text that only looks like a parameter: strings, comments, casts.
_TOKENS = re.compile(r"'(?:[^']|'')*'|--[^\n]*|::|:([a-z_][a-z0-9_]*)")
# Comments after a statement, such as the title of the next section. Unprepared, they would hide what follows
# in the same string: the next statement, or COMMIT.
_COMMENTS_AFTER = re.compile(r"(?:\s*\n[ \t]*--[^\n]*)+\s*\Z")
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
        variables = [parameter for parameter in self.parameters if parameter not in constants]
        types = f" ({', '.join(self.parameters[parameter] for parameter in variables)})" if variables else ""
        numbers = {parameter: f"${number}" for number, parameter in enumerate(variables, 1)}
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
        # In brackets, because -1::integer is -(1::integer): the least integer would be out of range.
        return {parameter: f"(%({parameter})s)::{type}" for parameter, type in self.parameters.items()}

    def _substitute(self, replacements: Mapping[str, str]) -> str:
        def replace(match: re.Match[str]) -> str:
            return replacements[match[1]] if match[1] else match[0]

        return _TOKENS.sub(replace, self.text.replace("%", "%%"))


def load_statements(directory: Path = DIRECTORY) -> dict[str, Statement]:
    """Read all statements. Raises `InvalidStatement`."""
    statements: dict[str, Statement] = {}
    for path in sorted(directory.glob("*.sql")):
        for statement in _parse(path.read_text(encoding="utf-8"), path.name):
            if statement.name in statements:
                raise InvalidStatement(f"{path.name}: {statement.name} is there twice")
            statements[statement.name] = statement
    return statements


shipped = functools.cache(load_statements)


def _parse(text: str, file: str) -> Iterator[Statement]:
    headers = list(_HEADER.finditer(text))
    if len(headers) != text.count("-- name:"):
        raise InvalidStatement(f"{file}: a header is malformed")
    for header, next_header in zip_longest(headers, headers[1:]):
        name, signature, returns, nullable = (
            " ".join((part or "").replace("--", " ").split()) for part in header.groups()
        )
        parameters = dict(
            parameter.strip().split(" ", 1) for parameter in signature.split(",") if parameter.strip()
        )
        body = text[header.end() : next_header.start() if next_header else None]
        body = _COMMENTS_AFTER.sub("", body).strip().rstrip(";")
        names = {match[1] for match in _TOKENS.finditer(body) if match[1]}
        if names != set(parameters):
            raise InvalidStatement(f"{file}: {name} declares {sorted(parameters)} and uses {sorted(names)}")
        columns = frozenset(column.strip().removesuffix("?") for column in nullable.split(",") if column)
        yield Statement(name, parameters, body, returns, columns)


# A statement by its name, with its parameters.
Call = tuple[str, Mapping[str, Any]]
P = ParamSpec("P")
R = TypeVar("R")


class Runner:
    """Runs statements: a database, on connections of its pool, or a transaction, on its own connection."""

    def _lend(self) -> AbstractContextManager[Connection]:
        raise NotImplementedError

    def _execute(self, connection: Connection, *calls: Call) -> NamedTupleCursor:
        """Run statements in one round trip. The cursor has the result of the last one."""
        raise NotImplementedError

    @property
    def acted_at(self) -> datetime:
        """The time of the act, for its statements with a parameter of this name."""
        raise RuntimeError("this statement writes for an act")


def query_of(statement: Statement) -> Callable[..., Any]:
    """Return the function that runs a statement."""
    name, returns = statement.name, statement.returns
    needs_time = "acted_at" in statement.parameters

    def run(on: Runner, /, **parameters: Any) -> Any:
        if needs_time:
            parameters["acted_at"] = on.acted_at
        with on._lend() as connection, on._execute(connection, (name, parameters)) as cursor:
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
    """Runs statements on one connection, between BEGIN and COMMIT.

    BEGIN travels with the first statement, and what runs `later` with the next one, or with COMMIT.
    """

    _db: "Database"
    _connection: Connection
    # Empty once it was sent.
    _begin: str
    # The calls that run with the next statement.
    _effects: list[Call] = field(default_factory=list, init=False)

    def _lend(self) -> AbstractContextManager[Connection]:
        return nullcontext(self._connection)

    def _execute(self, connection: Connection, *calls: Call, after: str = "") -> NamedTupleCursor:
        calls, before = (*self._effects, *calls), self._begin
        self._effects, self._begin = [], ""
        return self._db._execute(connection, *calls, before=before, after=after)

    def later(self, effect: Callable[Concatenate[Runner, P], int], *args: P.args, **kwargs: P.kwargs) -> None:
        """Run an effect whose number of rows nobody needs, without waiting for it."""
        effect(_Later(self), *args, **kwargs)

    def commit(self) -> None:
        """Run the waiting effects, commit, and notify of committed messages, as the end of the block does."""
        if self._begin and not self._effects:
            return
        with self._execute(self._connection, after="COMMIT") as cursor:
            if cursor.statusmessage != "COMMIT":
                raise psycopg2.InternalError("rolled back: the block went on after a statement had failed")
        notices = self._connection.notices
        if any(notice.endswith(MESSAGE_WRITTEN) for notice in notices):
            notices.clear()
            # The transaction is committed. The delivery process also finds messages without a notification.
            with suppress(psycopg2.Error), self._connection.cursor() as notification:
                notification.execute("NOTIFY outbox")

    def call(self, function: tuple[str, str], argument: dict[str, Any]) -> str | None:
        """Call a function of the operator, by schema and name, with JSON, and return its result as text.

        Call it after another statement.
        """
        # The only value in the text of a statement: a setting, quoted as an identifier.
        call = composed.SQL("SELECT {}(%s)::text").format(composed.Identifier(*function))
        with self._connection.cursor() as cursor:
            cursor.execute(call, (argument,))
            (result,) = cursor.fetchone() or (None,)
            return result


@dataclass
class _Later(Runner):
    """Holds the effects of a transaction."""

    _tx: Transaction

    @property
    def acted_at(self) -> datetime:
        return self._tx.acted_at

    def _lend(self) -> AbstractContextManager[Connection]:
        return self._tx._lend()

    def _execute(self, connection: Connection, *calls: Call) -> NamedTupleCursor:
        self._tx._effects.extend(calls)
        return connection.cursor(cursor_factory=NamedTupleCursor)


@dataclass
class _Asynchronous(Runner):
    """Runs statements of a database that do not wait for the disk."""

    _db: "Database"

    def _lend(self) -> AbstractContextManager[Connection]:
        return self._db._lend()

    def _execute(self, connection: Connection, *calls: Call) -> NamedTupleCursor:
        return self._db._execute(connection, *calls, before=ASYNCHRONOUS)


T = TypeVar("T", bound=Transaction)


class Database(Runner):
    """Runs named statements on pooled connections, each in its own transaction.

    Parameters with the name of a constant always have its value. The parameter `origin` is the result of
    `origin()` when the statement runs. Every method raises `psycopg2.Error`; `OperationalError` and
    `InterfaceError` mean that the database is unavailable. With `has_timeouts=False`, for long work,
    statements have no time limit. It gives up on Postgres at `gives_up_at`, a time of `time.monotonic`.
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
        gives_up_at: float = math.inf,
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
        self.pool = Pool(url, size, has_timeouts, gives_up_at)
        # A crash of Postgres may lose these statements, unless a later commit has waited for the disk.
        self.asynchronous: Runner = _Asynchronous(self)

    def transaction(self) -> AbstractContextManager[Transaction]:
        """Run the block's statements as one transaction; an exception rolls it back.

        A statement run by the database itself would take a second connection from the pool.
        """
        return self.begin(Transaction, BEGIN)

    def search(self) -> AbstractContextManager[Transaction]:
        """Like `transaction`, for statements that Postgres plans with their values: conditions on values that
        are null vanish, and an index gives the order.
        """
        return self.begin(Transaction, f"{BEGIN}; SET LOCAL plan_cache_mode = force_custom_plan")

    @contextmanager
    def begin(self, kind: type[T], text: str) -> Iterator[T]:
        """Run the block's statements as one transaction of a kind. `text` begins with BEGIN."""
        with self.pool.connection() as connection:
            tx = kind(self, connection, text)
            try:
                yield tx
                tx.commit()
            except _OUTDATED:
                connection.close()
                raise
            except BaseException:
                if connection.get_transaction_status() != TRANSACTION_STATUS_IDLE:
                    _roll_back(connection)
                raise

    def _lend(self) -> AbstractContextManager[Connection]:
        return self.pool.connection()

    def close(self) -> None:
        self.pool.close()

    def _execute(
        self, connection: Connection, *calls: Call, before: str = "", after: str = ""
    ) -> NamedTupleCursor:
        """Run statements, with BEGIN before them or COMMIT after them. If one is outdated, prepare it again,
        once. In a transaction that began in an earlier round trip this is impossible.
        """
        cursor = connection.cursor(cursor_factory=NamedTupleCursor)
        try:
            cursor.execute(self._compose(connection, cursor, calls, before, after))
        except _OUTDATED:
            if before:
                _roll_back(connection)
            if not self._prepares or connection.get_transaction_status() != TRANSACTION_STATUS_IDLE:
                raise
            with connection.cursor() as other:
                other.execute("DEALLOCATE ALL")
            connection.prepared.clear()
            cursor.execute(self._compose(connection, cursor, calls, before, after))
        return cursor

    def _compose(
        self, connection: Connection, cursor: NamedTupleCursor, calls: Sequence[Call], before: str, after: str
    ) -> bytes:
        """Return the text of statements, prepared."""
        texts = [before.encode()] if before else []
        for name, parameters in calls:
            if "origin" in self._statements[name].parameters:
                parameters = {**parameters, "origin": self._origin()}
            if not self._prepares:
                parameters = {**parameters, **self._constants[name]}
            elif name not in connection.prepared:
                # A statement is prepared on its first use: all of them take 10 MB of Postgres per connection.
                constants = self._constants[name]
                with connection.cursor() as other:
                    other.execute(self._statements[name].prepare(constants), constants)
                connection.prepared.add(name)
            texts.append(cursor.mogrify(self._texts[name], parameters))
        return b"; ".join([*texts, after.encode()] if after else texts)


def _roll_back(connection: Connection) -> None:
    # The pool closes a connection that is still in a transaction.
    with suppress(psycopg2.Error), connection.cursor() as cursor:
        cursor.execute("ROLLBACK")
