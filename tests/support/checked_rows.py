"""Counts statements, and fails a test in which one returns None in a column that its header does not mark with `?`."""

import re
import threading
from collections import Counter
from typing import Any

from psycopg2.extras import NamedTupleCursor

import sql

_run: Counter[str] = Counter()


def statements_run(thread: str | None = None) -> int:
    """Return how many statements this thread, or threads of a name, have run: other threads' statements are not part
    of a request's cost. Statements that travel together count as one.
    """
    return _run[thread or threading.current_thread().name]


class UnmarkedNone(AssertionError):
    """A statement returned None in a column that is not marked."""


class CheckedCursor(NamedTupleCursor):
    """The cursor of a statement; counts it, and looks for None in its rows."""

    def execute(self, query: Any, vars: Any = None) -> None:
        if query != b"COMMIT":
            _run[threading.current_thread().name] += 1
        super().execute(query, vars)

    def fetchone(self) -> Any:
        return self._checked(super().fetchone())

    def fetchall(self) -> list[Any]:
        return [self._checked(row) for row in super().fetchall()]

    def _checked(self, row: Any) -> Any:
        # BEGIN and other statements may travel with it.
        executed = re.findall(rb"(?:^|; )EXECUTE (\w+)", self.query or b"")
        statement = executed and sql.shipped().get(executed[-1].decode())
        if not statement or row is None:
            return row
        unmarked = [
            name for name, value in row._asdict().items() if value is None and name not in statement.nullable
        ]
        if unmarked:
            raise UnmarkedNone(
                f"{statement.name} returned None in {unmarked}; mark them with ? in its header"
            )
        return row
