"""Fails a test in which a statement returns None in a column that its header does not mark with `?`."""

import re
from typing import Any

from psycopg2.extras import NamedTupleCursor

import sql


class UnmarkedNone(AssertionError):
    """A statement returned None in a column that is not marked."""


class CheckedCursor(NamedTupleCursor):
    """The cursor of a prepared statement; looks for None in its rows."""

    def fetchone(self) -> Any:
        return self._checked(super().fetchone())

    def fetchall(self) -> list[Any]:
        return [self._checked(row) for row in super().fetchall()]

    def _checked(self, row: Any) -> Any:
        executed = re.match(rb"EXECUTE (\w+)", self.query or b"")
        statement = executed and sql.shipped().get(executed[1].decode())
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
